! SPDX-License-Identifier: Apache-2.0
! A Fortran program for the stepping test: array temporaries, recursion, formatted output.
program step_matrix
  implicit none
  integer :: i
  real(8) :: a(12, 12), b(12, 12)
  character(len=40) :: text
  call random_number(a)
  do i = 1, 200
    b = matmul(a, transpose(a)) / 12.0d0
    a = b / (1.0d0 + descend(mod(i, 17)))
    write (text, '(i6, f12.5)') i, sum(a)
  end do
  print *, trim(text)
contains
  recursive function descend(n) result(value)
    integer, intent(in) :: n
    real(8) :: value, room(n + 4)
    room = real(n, 8)
    if (n == 0) then
      value = sin(room(1)) + 1.0d0
    else
      value = descend(n - 1) + sum(room) / size(room)
    end if
  end function descend
end program step_matrix
