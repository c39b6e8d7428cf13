# SPDX-License-Identifier: Apache-2.0
"""The trees of a whole machine may be as deep as the deepest stack on it."""
import sys

sys.setrecursionlimit(10**6)
