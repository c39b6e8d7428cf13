! SPDX-License-Identifier: Apache-2.0
! Loops that nobody wrote: a slice of an array that does not lie in one piece is copied before it is
! passed on, and back afterwards. The comments at the ends of lines are what tests look for.
module gradients
  implicit none
  integer, parameter :: n = 40, species = 9
  real(8) :: grad(species, n, n, n), total = 0
contains
  ! Its argument must lie in one piece.
  subroutine scalar_gradient(field, count, sum)
    integer, intent(in) :: count
    real(8), intent(in) :: field(count)
    real(8), intent(inout) :: sum
    sum = sum + field(1) + field(count / 2) + field(count)
  end subroutine

  subroutine all_gradients()
    integer :: s
    do s = 1, species                                              ! here: the written loop
      call scalar_gradient(grad(s, :, 2:n - 1, :), n * (n - 2) * n, total) ! here: the copy
    end do
  end subroutine
end module

program copies
  use gradients
  implicit none
  character(len=12) :: text
  integer :: rounds = 300, i
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) rounds
  end if
  call random_number(grad)
  do i = 1, rounds                                                 ! here: the rounds
    call all_gradients()
  end do
  print *, total
end program
