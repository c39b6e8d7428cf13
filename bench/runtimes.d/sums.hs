-- SPDX-License-Identifier: Apache-2.0
-- sums SECONDS: laziness, maps and the collector's work.
module Main (main) where

import qualified Data.Map.Strict as Map
import Data.List (foldl', sort)
import Data.Time.Clock
import System.Environment

step :: Int -> Int
step seed = sum (map snd (Map.toList counts)) + length (sort (show seed))
  where
    values = take 3000 (iterate (\x -> (x * 1103515245 + 12345) `mod` 2147483648) seed)
    counts = foldl' (\m x -> Map.insertWith (+) (x `mod` 977) 1 m) Map.empty values

loop :: UTCTime -> Int -> Int -> IO Int
loop end n total = do
  now <- getCurrentTime
  if now > end then return total else do
    let next = step n
    next `seq` loop end (n + 1) (total + next)

main :: IO ()
main = do
  words' <- getArgs
  start <- getCurrentTime
  total <- loop (addUTCTime (fromIntegral (read (head (words' ++ ["5"])) :: Int)) start) 1 0
  print total
