/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recipes of Go's code, from Go's own table (image/gotab.h), which knows the size of every frame,
 * and of the few procedures of its runtime that go from one stack to another.
 */
struct image;
struct rows;

void go_add(struct image *image, struct rows *rows);
