! SPDX-License-Identifier: Apache-2.0
! Paths as Fortran has them: loops that are cycled and left, computed jumps, several entries into what is left by several
! returns, masks of arrays, a procedure that is an argument.
module shapes
  implicit none
contains
  recursive integer function collatz(n) result(steps)
    integer, value :: n
    if (n == 1) then
      steps = 0
    else if (mod(n, 2) == 0) then
      steps = 1 + collatz(n / 2)
    else
      steps = 1 + collatz(3 * n + 1)
    end if
  end function

  integer function kind_of(word)
    character(*), intent(in) :: word
    select case (word)
    case ("if", "then", "else")
      kind_of = 1
    case ("do":"echo")
      kind_of = 2
    case default
      kind_of = len_trim(word)
    end select
  end function

  subroutine jumps(which, sum)
    integer, intent(in) :: which
    integer, intent(inout) :: sum
    go to (10, 20, 30), which
    sum = sum + 1000
    return
10  sum = sum + 1
    go to 30
20  sum = sum + 10
    if (mod(sum, 3) == 0) return
30  sum = sum + 100
  end subroutine

  integer function primes(limit)
    integer, intent(in) :: limit
    integer :: i, j
    primes = 0
    outer: do i = 2, limit
      do j = 2, i - 1
        if (j * j > i) exit
        if (mod(i, j) == 0) cycle outer
      end do
      primes = primes + 1
    end do outer
  end function

  real function masked(a)
    real, intent(inout) :: a(:)
    where (a > 0.5)
      a = a * 2
    elsewhere (a > 0.25)
      a = -a
    end where
    masked = sum(a, mask=a > 0)
  end function

  real function zero_of(f, low, high)
    interface
      real function f(x)
        real, intent(in) :: x
      end function
    end interface
    real, value :: low, high
    integer :: i
    do i = 1, 60
      zero_of = (low + high) / 2
      if (f(zero_of) * f(low) <= 0) then
        high = zero_of
      else
        low = zero_of
      end if
      if (high - low < 1e-6) exit
    end do
  end function

  real function cubic(x)
    real, intent(in) :: x
    cubic = x**3 - 2 * x - 5
  end function
end module

program paths
  use shapes
  implicit none
  integer :: i, sum = 0, longest = 0
  real :: a(40)
  character(8) :: words(6) = [character(8) :: "if", "while", "do", "end", "procedure", "else"]
  do i = 1, 60
    longest = max(longest, collatz(i))
    call jumps(mod(i, 5), sum)
    sum = sum + kind_of(words(mod(i, 6) + 1))
  end do
  a = [(mod(i * 7, 11) / 11.0, i = 1, 40)]
  print *, longest, sum, primes(200), masked(a), zero_of(cubic, 2.0, 3.0)
end program
