/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a function is called in every build of a program. Compilers make copies of functions and
 * number them as they come; the copies count as the function, and numbers are left out:
 *
 *    solve.constprop.0, solve.part.0.cold, solve [clone .isra.0], solve.llvm.8129  ->  solve
 *    main::{lambda(int)#2}::operator()                                             ->  main::{lambda(int)#}::operator()
 *    app::run::h0123456789abcdef                                                   ->  app::run
 */
struct buf;

/* Appends it. */
void name_plain(const char *name, struct buf *out);

/* What functions have in common that a template makes of different arguments, or that have got other
   parameters; appended. The same as the name where it has neither:

    double app::sum<double>(std::vector<double> const&)  ->  app::sum
    app::Box<int>::operator<(app::Box<int> const&)       ->  app::Box::operator<   */
void name_family(const char *name, struct buf *out);

/* The last part of a path, without what the kernel adds to that of a deleted file; appended. */
void name_module(const char *path, struct buf *out);
/* The same without the numbers of a version: libx.so for libx.so.1.2 and libx-1.3.so. */
void name_module_family(const char *path, struct buf *out);
