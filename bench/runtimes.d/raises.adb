--  SPDX-License-Identifier: Apache-2.0
--  raises SECONDS: nothing but exceptions.
with Ada.Calendar;     use Ada.Calendar;
with Ada.Command_Line; use Ada.Command_Line;
with Ada.Text_IO;

procedure Raises is
   Bottom : exception;
   Count  : Long_Long_Integer := 0;
   Stop   : constant Time :=
     Clock + Duration'Value (if Argument_Count > 0 then Argument (1) else "5");

   procedure Deep (N : Natural) is
   begin
      if N = 0 then
         raise Bottom;
      end if;
      Deep (N - 1);
      Count := Count + 2;
   end Deep;
   pragma No_Inline (Deep);

begin
   while Clock < Stop loop
      for I in 1 .. 500 loop
         begin
            Deep (I mod 10);
         exception
            when Bottom =>
               Count := Count + 1;
         end;
      end loop;
   end loop;
   Ada.Text_IO.Put_Line (Long_Long_Integer'Image (Count));
end Raises;
