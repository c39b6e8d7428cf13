! SPDX-License-Identifier: Apache-2.0
! matrix SECONDS: array expressions, a recursive function, and the run-time library's formatting.
module work
  implicit none
contains
  recursive integer(8) function fib(n) result(f)
    integer, intent(in) :: n
    if (n < 2) then
      f = n
    else
      f = fib(n - 1) + fib(n - 2)
    end if
  end function fib
  subroutine multiply(a, b, c)
    real(8), intent(in) :: a(:, :), b(:, :)
    real(8), intent(out) :: c(:, :)
    c = matmul(a, b)
  end subroutine multiply
end module work
program matrix
  use work
  implicit none
  real(8) :: a(120, 120), b(120, 120), c(120, 120)
  integer(8) :: now, rate, start, total
  integer :: seconds
  character(len=32) :: word
  seconds = 5
  if (command_argument_count() > 0) then
    call get_command_argument(1, word)
    read (word, *) seconds
  end if
  call random_number(a)
  call random_number(b)
  call system_clock(start, rate)
  total = 0
  do
    call multiply(a, b, c)
    total = total + fib(20)
    write (word, '(es20.12)') sum(c)
    call system_clock(now)
    if (now - start > seconds * rate) exit
  end do
  print *, total, word
end program matrix
