{ SPDX-License-Identifier: Apache-2.0 }
{ sorts SECONDS: recursion, strings, exceptions. }
program sorts;
{$mode objfpc}{$H+}
uses SysUtils;

type
  Bottom = class(Exception);

var
  values: array[0..4999] of LongInt;

procedure Quick(low, high: LongInt);
var
  i, j, middle, t: LongInt;
begin
  i := low;
  j := high;
  middle := values[(low + high) div 2];
  repeat
    while values[i] < middle do Inc(i);
    while values[j] > middle do Dec(j);
    if i <= j then
    begin
      t := values[i];
      values[i] := values[j];
      values[j] := t;
      Inc(i);
      Dec(j);
    end;
  until i > j;
  if low < j then Quick(low, j);
  if i < high then Quick(i, high);
end;

function Deep(n: LongInt): LongInt;
begin
  if n = 0 then raise Bottom.Create('the bottom');
  Result := Deep(n - 1) + 1;
end;

var
  i, seed: LongInt;
  total: Int64;
  stop: QWord;
  text: string;
begin
  if ParamCount > 0 then i := StrToInt(ParamStr(1)) else i := 5;
  stop := GetTickCount64 + QWord(i) * 1000;
  total := 0;
  seed := 1;
  while GetTickCount64 < stop do
  begin
    for i := 0 to High(values) do
    begin
      seed := (seed * 16807 + 13) and $7ffffff;
      values[i] := seed;
    end;
    Quick(0, High(values));
    text := '';
    for i := 0 to 200 do text := text + IntToStr(values[i]);
    for i := 0 to 50 do
      try
        total := total + Deep(i mod 10);
      except
        on e: Bottom do total := total + Length(e.Message);
      end;
    total := total + Length(text);
  end;
  WriteLn(total);
end.
