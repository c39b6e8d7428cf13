; SPDX-License-Identifier: Apache-2.0
; Compiled at run time, with hash tables, floats and the collector's work.
(defun tree (n) (if (= n 0) 1 (+ (tree (- n 1)) (tree (- n 1)) 1)))
(defun hashes (n)
  (let ((table (make-hash-table :test 'equal)))
    (dotimes (i 300) (setf (gethash (format nil "~d" (* i n)) table) (sqrt (float (+ i n)))))
    (let ((sum 0.0)) (maphash (lambda (k v) (incf sum (+ v (length k)))) table) sum)))
(compile 'tree)
(compile 'hashes)
(let* ((seconds (parse-integer (or (car (last sb-ext:*posix-argv*)) "5")))
       (end (+ (get-universal-time) seconds)) (sum 0.0) (n 1))
  (loop while (< (get-universal-time) end)
        do (incf n) (incf sum (+ (tree 14) (hashes (mod n 1000)))))
  (print (> sum 0)))
