! SPDX-License-Identifier: Apache-2.0
! Modules, contained procedures, array expressions and a recursive function for bench/symbols.
module fields
  implicit none
  type :: field
    real(8), allocatable :: v(:, :)
  contains
    procedure :: smooth
    procedure :: energy
  end type field
contains
  pure function flux(a, b) result(f)
    real(8), intent(in) :: a, b
    real(8) :: f
    f = (a - b) * (1 + 0.25d0 * abs(a - b))
  end function flux

  subroutine smooth(self, rate)
    class(field), intent(inout) :: self
    real(8), intent(in) :: rate
    real(8), allocatable :: w(:, :)
    integer :: i, j
    w = self%v
    do j = 2, size(w, 2) - 1
      do i = 2, size(w, 1) - 1
        self%v(i, j) = w(i, j) - rate * (flux(w(i, j), w(i - 1, j)) + flux(w(i, j), w(i + 1, j)) &
                       + flux(w(i, j), w(i, j - 1)) + flux(w(i, j), w(i, j + 1)))
      end do
    end do
  end subroutine smooth

  function energy(self) result(e)
    class(field), intent(in) :: self
    real(8) :: e
    e = sum(self%v**2) + maxval(matmul(self%v(1:64, 1:64), transpose(self%v(1:64, 1:64))))
  end function energy

  recursive function paths(n) result(p)
    integer, intent(in) :: n
    integer :: p
    if (n < 2) then
      p = 1
    else
      p = paths(n - 1) + paths(n - 2)
    end if
  end function paths
end module fields

program stencil
  use fields
  implicit none
  type(field) :: f
  character(len=16) :: text
  integer :: rounds, i
  real(8) :: e
  rounds = 400
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) rounds
  end if
  allocate (f%v(256, 256))
  call random_seed()
  call random_number(f%v)
  e = 0
  do i = 1, rounds
    call f%smooth(0.1d0)
    e = e + f%energy()
    if (mod(i, 20) == 0) e = e + paths(24)
    write (text, '(es12.4)') e
  end do
  print *, e > 0, len_trim(text)
end program stencil
