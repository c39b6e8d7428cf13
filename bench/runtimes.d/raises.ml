(* SPDX-License-Identifier: Apache-2.0 *)
(* raises SECONDS: exceptions, calls into C, closures and the collector's work. *)
exception Bottom of int

let rec deep n m = if n = 0 then raise (Bottom m) else 1 + deep (n - 1) m
let attempt i = try deep (i mod 10) i with Bottom m -> m land 7

let hashes n =
  let table = Hashtbl.create 16 in
  for i = 0 to 200 do
    Hashtbl.replace table (string_of_int (i * n)) (float_of_int i)
  done;
  Hashtbl.fold (fun key value sum -> sum +. value +. float_of_int (String.length key)) table 0.

let sorted n =
  List.init 300 (fun i -> (i * 7919 * n) land 0xffff)
  |> List.sort compare |> List.fold_left ( + ) 0

let () =
  let seconds = if Array.length Sys.argv > 1 then float_of_string Sys.argv.(1) else 5. in
  let stop = Unix.gettimeofday () +. seconds in
  let count = ref 0 and sum = ref 0. in
  while Unix.gettimeofday () < stop do
    for i = 1 to 2000 do
      count := !count + attempt i
    done;
    sum := !sum +. hashes !count +. float_of_int (sorted !count)
  done;
  Printf.printf "%d %g\n" !count !sum
