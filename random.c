#include <stdio.h>
static unsigned fuel = 20000;
static unsigned f0(unsigned a, unsigned b)
{
	unsigned c = a ^ b;
	if (!fuel)
		return a;
	fuel--;
	if (c == (c >> 7)) {
		c ^= (unsigned)((float)c * 0.37f);
		for (unsigned i2 = 0; i2 < 6 && fuel; i2++) {
			fuel--;
			switch ((unsigned)((float)c * 0.37f) % 9) {
			case 0:
				if ((b >> 14) < a && a & 3) {
					a ^= (a >> 5);
				} else {
					c ^= (unsigned)((float)b * 0.37f);
					c = c;
					b -= (b | c);
				}
				break;
			case 1:
				switch ((b * b) % 13) {
				case 0:
					b = c;
					c -= (unsigned)((float)c * 0.37f);
					b ^= b;
					break;
				case 1:
					c -= (c >> 7);
					c = c;
				case 2:
					a ^= a;
					c += (c >> 8);
				case 3:
					b ^= a;
					b += 4096;
					a ^= a;
				case 4:
					a += a;
					break;
				case 5:
					a ^= c;
					b += a;
					break;
				case 6:
					b += (b >> 16);
				case 7:
					c += (b >> 5);
					a += c;
					break;
				case 8:
					b ^= c;
					break;
				}
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					b = (c >> 14);
					a ^= a;
				}
				if ((a - a) & 128) {
					c += (a | b);
					b += a;
					c = (c >> 14);
				} else {
					a += (unsigned)((float)b * 0.37f);
					a += (a + a);
					a += (a & c);
				}
				break;
			case 2:
				if ((c - c) < b && (unsigned)((float)c * 0.37f) & 3) {
					c += (unsigned)((float)c * 0.37f);
				}
				c -= (a >> 17);
			case 3:
				if (!(b % 4)) {
					b += 255;
				}
				if (b & 1)
					return (unsigned)((float)c * 0.37f);
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					c += 255;
				}
			}
			if (!(a % 3)) {
				if (b & 64) {
					a = (unsigned)((float)a * 0.37f);
					a += 4096;
					b ^= a;
				}
				if (a < c && (unsigned)((float)b * 0.37f) & 3)
					continue;
			} else {
				if (!((unsigned)((float)c * 0.37f) % 5)) {
					b -= c;
					b ^= (b & b);
					b += c;
				}
			}
		}
		b ^= a;
	} else {
		c += (b ^ a);
	}
	if (!((unsigned)((float)a * 0.37f) % 4))
		return 3;
	return a + b * 3 + c;
}
static __attribute__((noinline)) unsigned f1(unsigned a, unsigned b)
{
	unsigned c = a ^ b;
	if (!fuel)
		return a;
	fuel--;
	if (c == (a ^ c)) {
		for (unsigned i2 = 0; i2 < 4 && fuel; i2++) {
			fuel--;
			b ^= f0(a, c);
			for (unsigned i3 = 0; i3 < 3 && fuel; i3++) {
				fuel--;
				switch (305419896 % 9) {
				case 0:
					c ^= f0(c, (unsigned)((float)b * 0.37f));
					b ^= f0(c, (c & a));
					break;
				case 1:
					c += (b >> 17);
					b ^= f0(a, 65535);
					c -= (a ^ c);
					break;
				case 2:
					c ^= f0((unsigned)((float)c * 0.37f), (a & c));
					b = c;
					break;
				case 3:
					a ^= f0((a >> 16), c);
					a ^= f0(b, (unsigned)((float)b * 0.37f));
					break;
				case 4:
					c = (b * c);
					break;
				case 5:
					b -= (unsigned)((float)c * 0.37f);
					break;
				case 6:
					b -= 4096;
				case 7:
					c -= (c * b);
					a ^= f0(c, b);
					b = (b >> 10);
					break;
				case 8:
					c ^= (unsigned)((float)c * 0.37f);
					a ^= f0((a >> 8), (unsigned)((float)c * 0.37f));
					c = 1;
				case 9:
					b ^= (b >> 3);
					b = (b ^ b);
					a -= a;
					break;
				}
				if (7 != (c * a)) {
					a ^= (c >> 13);
					c = (c >> 17);
				} else {
					c = c;
					c ^= f0((b >> 13), (unsigned)((float)a * 0.37f));
					b -= (unsigned)((float)a * 0.37f);
				}
			}
			b ^= f0((a + b), (b + c));
		}
	} else {
		switch ((a >> 13) % 13) {
		case 0:
			if ((b >> 7) != 3)
				return a;
			if (!((b * b) % 2)) {
				if (a < (b >> 2)) {
					a -= (unsigned)((float)b * 0.37f);
				}
				if ((c >> 13) & 8) {
					b -= b;
				}
			} else {
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					c -= 1;
					c ^= 3;
				}
				b = (unsigned)((float)c * 0.37f);
			}
		case 1:
			c = (a + a);
			for (unsigned i3 = 0; i3 < 2 && fuel; i3++) {
				fuel--;
				if (305419896 < (a ^ a) && a & 3)
					return (c & c);
				a ^= a;
			}
			break;
		case 2:
			switch ((a * b) % 5) {
			case 0:
				a += (unsigned)((float)a * 0.37f);
				c ^= b;
				if (c < c && (c + a) & 3) {
					a -= (b * b);
					b ^= (unsigned)((float)b * 0.37f);
					a += (unsigned)((float)b * 0.37f);
				} else {
					b ^= (unsigned)((float)c * 0.37f);
					c += 7;
					a -= a;
				}
				break;
			case 1:
				c = c;
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					a ^= f0(b, 7);
				}
				a ^= a;
				break;
			case 2:
				if ((b | b) < (unsigned)((float)b * 0.37f)) {
					a ^= f0((c >> 4), c);
					b ^= f0((b * b), c);
					c ^= (unsigned)((float)a * 0.37f);
				}
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					b = a;
					b ^= f0((b & b), (a >> 6));
				}
				if ((c | c) < a && b & 3) {
					b ^= f0(0, (b + b));
				} else {
					b ^= f0(65535, (unsigned)((float)c * 0.37f));
					b ^= (a - c);
					c += c;
				}
				break;
			case 3:
				if ((unsigned)((float)b * 0.37f) & 8)
					return (c * a);
				if (!(c % 5)) {
					a ^= a;
					c ^= (c | b);
					a -= (unsigned)((float)b * 0.37f);
				} else {
					a ^= (a & c);
					c += 65535;
				}
				break;
			case 4:
				if (!(4096 % 4)) {
					c += b;
					c ^= f0((a >> 1), (unsigned)((float)a * 0.37f));
					c ^= (b - c);
				}
				if (b < c)
					return a;
			case 5:
				if ((unsigned)((float)c * 0.37f) > 255)
					return c;
				if (4096 < b && a & 3) {
					a = (c >> 9);
					b ^= 0;
					b += (c >> 18);
				}
				if (c & 64)
					return (unsigned)((float)b * 0.37f);
				break;
			}
			a ^= f0(4096, a);
			if (a & 8) {
				if (4096 < 1 && (a & a) & 3) {
					c -= 255;
				}
				c -= (unsigned)((float)a * 0.37f);
				b ^= f0((unsigned)((float)c * 0.37f), (a >> 19));
			}
			break;
		case 3:
			if ((b & a) < b && (a * c) & 3)
				return a;
			a ^= f0(c, (b >> 16));
			break;
		case 4:
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				if (!(c % 2)) {
					a ^= f0((a >> 18), (unsigned)((float)c * 0.37f));
					c = (b | b);
				} else {
					b ^= f0(c, (b * b));
					a ^= c;
					b ^= f0((unsigned)((float)c * 0.37f), (unsigned)((float)c * 0.37f));
				}
				switch ((unsigned)((float)a * 0.37f) % 11) {
				case 0:
					c ^= f0(c, (a >> 5));
					c ^= (unsigned)((float)b * 0.37f);
					c ^= (unsigned)((float)b * 0.37f);
					break;
				case 1:
					b = b;
					a ^= f0(a, (b + a));
					b = b;
					break;
				case 2:
					b ^= f0(c, (unsigned)((float)b * 0.37f));
					break;
				case 3:
					c += (a >> 10);
					a += 4096;
					break;
				case 4:
					c ^= f0((unsigned)((float)c * 0.37f), a);
					c = (b * b);
					break;
				case 5:
					a ^= b;
					b = a;
					break;
				case 6:
					c ^= f0((c ^ a), (unsigned)((float)b * 0.37f));
					a ^= f0(65535, b);
					b ^= f0(a, c);
					break;
				case 7:
					a ^= f0((c - a), a);
					c ^= a;
					break;
				case 8:
					a ^= f0((a >> 10), 4096);
					b += 305419896;
					break;
				case 9:
					c += (a >> 16);
				case 10:
					b ^= f0(7, 65535);
					a = (unsigned)((float)a * 0.37f);
					c = (unsigned)((float)a * 0.37f);
					break;
				}
			}
			break;
		case 5:
			if (!(c % 2)) {
				a ^= f0((a >> 9), 4096);
			}
			switch (c % 7) {
			case 0:
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					a ^= f0((c >> 5), a);
					a ^= f0(b, (unsigned)((float)c * 0.37f));
				}
				break;
			case 1:
				if (!((a >> 5) % 2))
					return 1;
				b ^= f0((c >> 18), (a - c));
				break;
			case 2:
				a -= (b | c);
				b -= (unsigned)((float)c * 0.37f);
				break;
			case 3:
				switch (0 % 7) {
				case 0:
					c ^= b;
				case 1:
					c ^= f0((c & c), a);
					break;
				case 2:
					a ^= f0(b, b);
					break;
				case 3:
					a += (a >> 13);
				case 4:
					c = (c >> 8);
					b ^= 3;
					a ^= (unsigned)((float)a * 0.37f);
				case 5:
					b -= 1;
					a += a;
					b += (b * a);
					break;
				case 6:
					b ^= b;
					c -= (unsigned)((float)b * 0.37f);
					break;
				case 7:
					a -= (c >> 15);
					b ^= f0(a, a);
					break;
				case 8:
					b ^= f0(c, b);
					c ^= f0((a * a), a);
					break;
				case 9:
					c ^= b;
					a = b;
					break;
				}
			case 4:
				if ((c + b) < (unsigned)((float)c * 0.37f)) {
					a -= a;
					c ^= b;
				} else {
					a += c;
					c += 305419896;
					c = (c >> 2);
				}
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					a ^= (b >> 15);
				}
				if (!(4096 % 2)) {
					a ^= f0((unsigned)((float)c * 0.37f), b);
					b = 3;
				}
				break;
			case 5:
				switch (a % 5) {
				case 0:
					c -= (unsigned)((float)c * 0.37f);
					c ^= f0(0, 7);
				case 1:
					c ^= f0((a * b), 0);
					c ^= f0((b >> 4), (unsigned)((float)c * 0.37f));
					c ^= f0((unsigned)((float)a * 0.37f), (a - c));
					break;
				case 2:
					c = 7;
					a ^= f0((c - c), a);
					a ^= f0(7, a);
					break;
				case 3:
					a ^= f0(a, a);
					b -= a;
					break;
				}
				break;
			case 6:
				if (7 & 16) {
					b = a;
					a -= c;
					c = (c >> 14);
				} else {
					c ^= c;
					c ^= 305419896;
					c ^= (unsigned)((float)a * 0.37f);
				}
				b ^= f0((unsigned)((float)b * 0.37f), c);
				break;
			case 7:
				if ((b >> 10) & 64) {
					c = (unsigned)((float)b * 0.37f);
				}
				a += (b + b);
				break;
			case 8:
				if (0 & 2) {
					b -= c;
					c += (a - a);
				}
				break;
			}
			switch (b % 6) {
			case 0:
				if (c < (c + a)) {
					c -= (unsigned)((float)a * 0.37f);
					c ^= f0(a, c);
					c += (c * a);
				}
				if ((unsigned)((float)b * 0.37f) & 128) {
					c ^= b;
				} else {
					a ^= f0(b, (unsigned)((float)a * 0.37f));
				}
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					c += (unsigned)((float)a * 0.37f);
					b ^= c;
					c += c;
				}
				break;
			case 1:
				b = (c >> 14);
				if (a < a) {
					c ^= f0((unsigned)((float)b * 0.37f), c);
					c ^= c;
				}
			case 2:
				c = a;
				break;
			case 3:
				if (b & 4) {
					b ^= 7;
				} else {
					a -= c;
				}
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					b -= c;
				}
				break;
			case 4:
				b -= c;
				c ^= f0((c >> 5), c);
			case 5:
				a ^= f0(a, c);
				if (!(b % 4))
					return a;
				if (7 > b)
					return a;
				break;
			}
		case 6:
			if ((b + a) & 128)
				return a;
			break;
		case 7:
			c ^= f0(c, (unsigned)((float)a * 0.37f));
			if (c > 255) {
				if (c < (b >> 7) && (c >> 1) & 3) {
					c += (unsigned)((float)b * 0.37f);
					c -= c;
					b += (a >> 1);
				}
				if (!((a + c) % 4))
					return a;
			} else {
				a = c;
				if (a == (b >> 17)) {
					b ^= f0(b, c);
					b ^= f0(b, 65535);
					c ^= 4096;
				} else {
					c ^= f0(b, (unsigned)((float)b * 0.37f));
					b ^= f0(305419896, c);
				}
			}
			if (a < a && 3 & 3) {
				if ((a >> 14) & 16) {
					a ^= f0(c, (c >> 13));
					b += (a >> 10);
				}
				if ((a * b) & 8) {
					b ^= f0(a, 0);
					a -= a;
					b ^= (a >> 13);
				}
				if (b < (a >> 7) && (unsigned)((float)a * 0.37f) & 3)
					return c;
			} else {
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					b -= (c ^ c);
					a -= b;
					b = (b >> 7);
				}
				if (1 < 3 && (b * c) & 3)
					return a;
			}
			break;
		}
	}
	if (c < 255)
		return b;
	return a + b * 3 + c;
}
static __attribute__((noinline)) unsigned f2(unsigned a, unsigned b)
{
	unsigned c = a ^ b;
	if (!fuel)
		return a;
	fuel--;
	if (255 != b) {
		if (!((a >> 15) % 5))
			return 65535;
		switch ((unsigned)((float)a * 0.37f) % 8) {
		case 0:
			for (unsigned i3 = 0; i3 < 4 && fuel; i3++) {
				fuel--;
				b ^= f1(b, c);
				if ((b | c) & 8)
					return c;
			}
			for (unsigned i3 = 0; i3 < 4 && fuel; i3++) {
				fuel--;
				if (!(a % 4)) {
					a ^= f0(305419896, 7);
					a = (b - c);
					b ^= f1((a >> 19), a);
				} else {
					c ^= (a | a);
				}
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					a = 1;
					b += a;
				}
				if ((b & c) < (b | c) && (a - c) & 3) {
					c ^= (b | b);
				} else {
					b = c;
					a ^= (c >> 8);
				}
			}
			if ((b | b) == (c * c)) {
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					b ^= f0((b >> 17), a);
					c -= b;
					c -= (unsigned)((float)b * 0.37f);
				}
			}
		case 1:
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				c ^= (c * b);
				if (!(b % 5)) {
					b ^= c;
					a ^= f0(a, a);
					a += (unsigned)((float)a * 0.37f);
				} else {
					a = (unsigned)((float)a * 0.37f);
					a -= (unsigned)((float)c * 0.37f);
					a = a;
				}
				a ^= (a | a);
			}
			b += a;
			break;
		case 2:
			switch (c % 13) {
			case 0:
				c = (a & a);
				if (65535 < (c >> 16) && a & 3) {
					a ^= f0((a >> 16), c);
				}
				break;
			case 1:
				if ((c >> 16) < 7 && (unsigned)((float)a * 0.37f) & 3) {
					c ^= f0((a ^ b), b);
					b ^= f1((unsigned)((float)b * 0.37f), (c & b));
					b ^= f1(1, 65535);
				}
				break;
			case 2:
				if ((c - b) & 32) {
					a = a;
					a ^= 255;
					a ^= f0((unsigned)((float)b * 0.37f), a);
				} else {
					b ^= f0(c, 7);
					c = b;
				}
				break;
			case 3:
				if ((a >> 10) < (a >> 3) && 4096 & 3)
					return a;
				switch ((unsigned)((float)c * 0.37f) % 5) {
				case 0:
					b = b;
					a ^= f0(c, (c >> 18));
					a ^= f1((b >> 5), a);
					break;
				case 1:
					b += c;
					break;
				case 2:
					b = (unsigned)((float)a * 0.37f);
					b = 1;
					break;
				case 3:
					c += (unsigned)((float)c * 0.37f);
					break;
				case 4:
					a -= a;
					a += (b | b);
					a ^= c;
				case 5:
					c ^= (c ^ a);
					b += (b + a);
					b += 4096;
					break;
				}
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					c ^= f0((c >> 12), (b + a));
					b += c;
					b += c;
				}
				break;
			case 4:
				switch (b % 10) {
				case 0:
					c = c;
					b ^= c;
					break;
				case 1:
					b = c;
					b ^= f1(a, 3);
					break;
				case 2:
					b -= 255;
					b ^= f1(255, (a >> 18));
					c ^= f0(c, (unsigned)((float)c * 0.37f));
				case 3:
					b ^= f0((a >> 15), c);
					break;
				case 4:
					b = (unsigned)((float)b * 0.37f);
					c -= (b | a);
					c ^= f1(c, c);
					break;
				case 5:
					c ^= (unsigned)((float)c * 0.37f);
					break;
				}
				break;
			case 5:
				if ((a >> 13) < (unsigned)((float)c * 0.37f) && (a >> 10) & 3)
					return 7;
				switch (c % 9) {
				case 0:
					a ^= f1(4096, b);
					break;
				case 1:
					a ^= c;
					c -= b;
					a -= b;
				case 2:
					b = (unsigned)((float)b * 0.37f);
					break;
				case 3:
					c -= 1;
					a ^= f0(c, (unsigned)((float)a * 0.37f));
					c ^= c;
				case 4:
					b -= c;
					b += a;
					b += (c & b);
					break;
				case 5:
					b ^= a;
					b -= 65535;
					a -= b;
					break;
				case 6:
					c ^= f0(b, c);
					b += a;
					break;
				case 7:
					a ^= f1((b >> 4), a);
					b ^= f0((unsigned)((float)c * 0.37f), (c >> 9));
					a ^= f0((b >> 6), a);
					break;
				}
				if (b & 1) {
					b = b;
					b ^= f1((c & b), (b ^ c));
				} else {
					b ^= b;
				}
				break;
			}
		case 3:
			if (a & 2) {
				a ^= f0(7, a);
				switch (4096 % 13) {
				case 0:
					b ^= b;
					break;
				case 1:
					b ^= f0((c * a), (b >> 13));
					break;
				case 2:
					b -= (a >> 13);
					break;
				case 3:
					a -= (unsigned)((float)a * 0.37f);
				case 4:
					b ^= a;
					break;
				case 5:
					a ^= f1(a, b);
					a = a;
				case 6:
					c -= a;
					b ^= f0(0, (b ^ a));
					break;
				case 7:
					c = (unsigned)((float)b * 0.37f);
					break;
				case 8:
					a ^= f1(a, b);
					c = (unsigned)((float)c * 0.37f);
					a += b;
					break;
				}
				if ((b * a) > b)
					return a;
			} else {
				if (b < a && (unsigned)((float)b * 0.37f) & 3) {
					c += c;
					b -= 65535;
				}
			}
		case 4:
			for (unsigned i3 = 0; i3 < 4 && fuel; i3++) {
				fuel--;
				if (!(a % 4)) {
					a += c;
					a ^= f1((a - b), (unsigned)((float)c * 0.37f));
				} else {
					c -= (a >> 3);
					a -= (c & b);
					c -= c;
				}
			}
			if (!(c % 5)) {
				b ^= 4096;
				if (!(a % 4))
					return a;
				b = 4096;
			} else {
				if ((a & a) > c)
					return a;
				if ((unsigned)((float)b * 0.37f) == (c + a))
					return a;
				if (!((c >> 14) % 4)) {
					a ^= (b >> 12);
					c = c;
					c -= b;
				}
			}
			for (unsigned i3 = 0; i3 < 6 && fuel; i3++) {
				fuel--;
				if (!((c >> 19) % 4))
					break;
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					b ^= b;
					c ^= 305419896;
				}
			}
			break;
		case 5:
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					a = 7;
				}
				a ^= f0(b, a);
				switch ((c & a) % 7) {
				case 0:
					c += c;
					b = c;
					c = a;
					break;
				case 1:
					b -= a;
					break;
				case 2:
					c = (b * b);
					b = (b | a);
					a ^= (b >> 14);
					break;
				case 3:
					b ^= (unsigned)((float)b * 0.37f);
				}
			}
			for (unsigned i3 = 0; i3 < 6 && fuel; i3++) {
				fuel--;
				if (c < a) {
					c -= (a >> 15);
					b ^= f1((unsigned)((float)b * 0.37f), (a + b));
					b = (unsigned)((float)a * 0.37f);
				} else {
					a = (b - b);
					a ^= a;
				}
			}
			break;
		case 6:
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					a = 65535;
				}
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					a = b;
					c ^= f1((a >> 15), c);
					a += (unsigned)((float)b * 0.37f);
				}
				if ((unsigned)((float)a * 0.37f) < 4096) {
					b = (c + a);
					c ^= (c >> 10);
				} else {
					c ^= f1((unsigned)((float)a * 0.37f), a);
					c ^= f1((c >> 4), a);
					b = a;
				}
			}
			if ((b >> 3) < c && a & 3)
				return (a & a);
			if ((b | c) < a && (b >> 17) & 3)
				return b;
		case 7:
			c ^= f1((unsigned)((float)b * 0.37f), a);
			for (unsigned i3 = 0; i3 < 4 && fuel; i3++) {
				fuel--;
				for (unsigned i4 = 0; i4 < 2 && fuel; i4++) {
					fuel--;
					a += b;
					a += a;
				}
				if (c == (b * a)) {
					a = (c >> 14);
					b = (unsigned)((float)a * 0.37f);
					a = c;
				}
				if ((unsigned)((float)b * 0.37f) < b && 4096 & 3) {
					c ^= f0(b, 3);
					b ^= f1(b, 255);
				}
			}
			break;
		case 8:
			switch (c % 7) {
			case 0:
				c ^= f0((a * c), b);
			case 1:
				a = (unsigned)((float)b * 0.37f);
				if (3 < a && 305419896 & 3) {
					c = (unsigned)((float)b * 0.37f);
				}
				break;
			case 2:
				if (c & 32) {
					b ^= f0(305419896, 3);
					b -= 7;
				}
				c -= c;
			case 3:
				if ((a >> 14) < 7 && c & 3)
					return a;
				if ((a + c) & 16) {
					b ^= f0(255, a);
				}
				break;
			case 4:
				if ((b ^ a) != a) {
					a = b;
				}
				a ^= f0(3, (unsigned)((float)c * 0.37f));
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					c ^= f0((c & c), (c ^ c));
					a ^= (c >> 11);
					b += b;
				}
			case 5:
				b ^= f0((b >> 16), (unsigned)((float)b * 0.37f));
				b = a;
				for (unsigned i4 = 0; i4 < 2 && fuel; i4++) {
					fuel--;
					c ^= f1(b, c);
					a -= a;
				}
			}
			if ((c ^ c) & 8) {
				if (!(c % 4)) {
					b ^= (a * c);
					c += c;
					c += c;
				} else {
					b = c;
					c = (b >> 14);
					b += 4096;
				}
			}
		}
	}
	for (unsigned i1 = 0; i1 < 3 && fuel; i1++) {
		fuel--;
		if (1 < 7) {
			for (unsigned i3 = 0; i3 < 2 && fuel; i3++) {
				fuel--;
				c ^= f1(b, a);
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					c -= 4096;
				}
				switch (7 % 12) {
				case 0:
					c ^= (unsigned)((float)c * 0.37f);
				case 1:
					b ^= f1(b, (c >> 3));
					a ^= 65535;
					break;
				case 2:
					b = 3;
					break;
				case 3:
					a += 305419896;
					break;
				case 4:
					a = (unsigned)((float)b * 0.37f);
					break;
				case 5:
					c = 7;
					b ^= f1(305419896, 1);
					break;
				case 6:
					b -= (a >> 3);
				case 7:
					c ^= f1((c >> 13), c);
					b ^= 1;
					break;
				case 8:
					c += (c ^ c);
					c ^= f1(b, 7);
				case 9:
					c ^= f0((c >> 12), (unsigned)((float)a * 0.37f));
					b -= (b >> 19);
					b ^= f0((unsigned)((float)a * 0.37f), b);
				}
			}
		} else {
			c += c;
		}
	}
	if (a < a && (b + a) & 3) {
		a ^= f0((c >> 9), c);
		c ^= (unsigned)((float)a * 0.37f);
	} else {
		switch ((unsigned)((float)a * 0.37f) % 13) {
		case 0:
			for (unsigned i3 = 0; i3 < 3 && fuel; i3++) {
				fuel--;
				if ((unsigned)((float)b * 0.37f) == b) {
					a ^= f1(c, (c >> 13));
				}
				if (!((a >> 8) % 2))
					return a;
			}
		case 1:
			if ((b >> 9) & 2) {
				a ^= (a * a);
			} else {
				switch (a % 9) {
				case 0:
					b -= b;
					b = (unsigned)((float)c * 0.37f);
				case 1:
					a ^= f0(a, c);
					c ^= f1(a, (c * a));
				case 2:
					b -= (c >> 3);
					a -= (unsigned)((float)b * 0.37f);
					break;
				case 3:
					c += (b ^ c);
					b += (c >> 17);
					b ^= f0((a | a), b);
					break;
				case 4:
					b ^= f1(b, a);
					b -= b;
					a += a;
					break;
				case 5:
					b ^= (b - b);
					c ^= f0((a >> 7), (b & c));
					c += (unsigned)((float)b * 0.37f);
					break;
				case 6:
					a = (unsigned)((float)a * 0.37f);
					a ^= f1(0, 0);
					c = (unsigned)((float)a * 0.37f);
					break;
				case 7:
					a += (c & b);
					c = (c & b);
					a = a;
				}
				a ^= f0(b, b);
			}
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				c -= (b >> 3);
			}
			if ((unsigned)((float)b * 0.37f) < b && c & 3)
				return a;
			break;
		case 2:
			c ^= f0(b, c);
		case 3:
			if (!((a >> 15) % 4)) {
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					b ^= f1(a, a);
					b += (unsigned)((float)b * 0.37f);
					b ^= f0(a, (c >> 16));
				}
				switch (a % 5) {
				case 0:
					c ^= f0(0, a);
					break;
				case 1:
					b ^= f0((b >> 11), 65535);
					b ^= f1(c, (a | a));
				case 2:
					b ^= f0(c, b);
					c = (unsigned)((float)c * 0.37f);
					b -= a;
					break;
				case 3:
					c -= c;
					b ^= f0((unsigned)((float)a * 0.37f), c);
				case 4:
					c = 1;
					break;
				case 5:
					c -= 305419896;
					break;
				case 6:
					a ^= f1(b, c);
					b = b;
					break;
				case 7:
					b = c;
					c ^= a;
					a ^= (b >> 1);
					break;
				}
			} else {
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					c = a;
					c ^= f0(a, 0);
					a += (c >> 12);
				}
			}
			b ^= f1(a, 7);
			for (unsigned i3 = 0; i3 < 2 && fuel; i3++) {
				fuel--;
				if (305419896 < c && c & 3)
					return (unsigned)((float)b * 0.37f);
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					c = 7;
					a = 0;
					c -= (a | c);
				}
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					c ^= f1((c >> 6), 3);
				}
			}
			break;
		case 4:
			c += (b * b);
		case 5:
			b += 65535;
			if ((a - b) < c && 4096 & 3) {
				a = (unsigned)((float)c * 0.37f);
			} else {
				c -= c;
				switch (c % 12) {
				case 0:
					a += (c & a);
					break;
				case 1:
					b ^= b;
					b ^= f0(a, (b >> 2));
				case 2:
					b ^= a;
					break;
				case 3:
					b += a;
					break;
				case 4:
					b ^= f1(a, 4096);
					a = (c ^ c);
					break;
				case 5:
					c ^= f1(a, (unsigned)((float)b * 0.37f));
				case 6:
					b -= (c >> 16);
					c ^= f1((a >> 13), 1);
					a += b;
					break;
				case 7:
					b ^= f0(a, (b >> 4));
					break;
				case 8:
					c += 4096;
					a ^= (a >> 6);
				case 9:
					b ^= f0((unsigned)((float)c * 0.37f), (b - b));
					a ^= f1(c, b);
				}
				c ^= b;
			}
			break;
		}
		if (c < (c >> 17))
			return b;
		if (!((c & c) % 5))
			return (b + c);
	}
	return a + b * 3 + c;
}
static __attribute__((noinline)) unsigned f3(unsigned a, unsigned b)
{
	unsigned c = a ^ b;
	if (!fuel)
		return a;
	fuel--;
	if ((c ^ a) < (unsigned)((float)b * 0.37f) && (c >> 7) & 3) {
		if (!(b % 5)) {
			a ^= f2(255, (a | b));
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				c ^= f0(0, (unsigned)((float)b * 0.37f));
			}
			b ^= f0(b, (b >> 10));
		} else {
			a -= b;
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				b -= (c + a);
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					c += (unsigned)((float)a * 0.37f);
					c += c;
				}
				if (!((c & b) % 4)) {
					a ^= 7;
					a -= (unsigned)((float)c * 0.37f);
				} else {
					a -= a;
					c += (c >> 6);
					b ^= f0((unsigned)((float)c * 0.37f), b);
				}
			}
			b = 65535;
		}
		for (unsigned i2 = 0; i2 < 5 && fuel; i2++) {
			fuel--;
			for (unsigned i3 = 0; i3 < 2 && fuel; i3++) {
				fuel--;
				b ^= f0(b, a);
				if ((b & b) < (unsigned)((float)b * 0.37f) && b & 3)
					continue;
			}
		}
		if (!((unsigned)((float)a * 0.37f) % 4))
			return a;
	}
	a ^= f2((b >> 16), a);
	a = b;
	for (unsigned i1 = 0; i1 < 2 && fuel; i1++) {
		fuel--;
		b -= c;
		switch ((b & c) % 7) {
		case 0:
			if (65535 < c && 4096 & 3)
				break;
			switch (c % 13) {
			case 0:
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					c -= 4096;
				}
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					b ^= f0(a, 305419896);
					b -= (c | c);
				}
				switch ((unsigned)((float)c * 0.37f) % 6) {
				case 0:
					c = b;
					c ^= f0(c, c);
					break;
				case 1:
					c -= (unsigned)((float)c * 0.37f);
					break;
				case 2:
					a ^= f1(1, (unsigned)((float)a * 0.37f));
					break;
				case 3:
					b += 255;
					break;
				case 4:
					b -= a;
					b ^= f2(a, (c >> 17));
				case 5:
					a += (a - a);
					b ^= (c + c);
					b = b;
					break;
				case 6:
					a ^= f0(a, (b >> 7));
					c = (b * a);
				case 7:
					c ^= f2((a >> 10), b);
					a ^= f2((c | a), b);
					a -= c;
				case 8:
					b += (unsigned)((float)b * 0.37f);
				case 9:
					a ^= b;
					break;
				}
				break;
			case 1:
				if (b < b && (b + a) & 3)
					break;
				b = 255;
				b -= (unsigned)((float)c * 0.37f);
				break;
			case 2:
				if (!(c % 5)) {
					b ^= f2(a, b);
					a ^= f0(305419896, (unsigned)((float)c * 0.37f));
				}
				if ((b | b) > 1) {
					a = (c & a);
				} else {
					c ^= f0(a, (unsigned)((float)b * 0.37f));
				}
				break;
			case 3:
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					c = 1;
				}
				for (unsigned i4 = 0; i4 < 5 && fuel; i4++) {
					fuel--;
					a = c;
				}
				break;
			case 4:
				if ((a & a) & 1) {
					c -= (c >> 6);
				}
				if (c < a && a & 3) {
					c ^= f0(3, c);
					b -= 3;
					b = (b >> 5);
				} else {
					a = a;
					b -= c;
				}
			}
			break;
		case 1:
			c ^= (c >> 2);
			break;
		case 2:
			for (unsigned i3 = 0; i3 < 5 && fuel; i3++) {
				fuel--;
				if (!(a % 5)) {
					a = c;
					b ^= (a >> 6);
					c -= (b ^ a);
				} else {
					a = b;
				}
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					b = b;
					b = b;
					b += (c >> 12);
				}
			}
			for (unsigned i3 = 0; i3 < 3 && fuel; i3++) {
				fuel--;
				if (b < a && b & 3)
					continue;
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					a ^= f2(b, (c >> 7));
				}
			}
			b += 0;
			break;
		case 3:
			if ((a & c) > 65535) {
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					a ^= (unsigned)((float)a * 0.37f);
				}
				for (unsigned i4 = 0; i4 < 2 && fuel; i4++) {
					fuel--;
					a ^= f0(b, 255);
					c = (unsigned)((float)b * 0.37f);
					b ^= 7;
				}
				for (unsigned i4 = 0; i4 < 3 && fuel; i4++) {
					fuel--;
					a += (b >> 1);
					a ^= 4096;
					a = c;
				}
			}
			c = a;
			break;
		case 4:
			if (b & 32)
				continue;
		case 5:
			if (65535 < b && b & 3) {
				if (b > b)
					break;
				if ((b * b) & 128) {
					a += a;
					c ^= b;
				}
			} else {
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					b ^= f0((b * b), a);
					b = b;
				}
				if ((unsigned)((float)c * 0.37f) < (c * b) && 1 & 3)
					return c;
				switch ((unsigned)((float)a * 0.37f) % 9) {
				case 0:
					c ^= f2((a >> 7), (c - b));
					break;
				case 1:
					c ^= (c & a);
					b += a;
				case 2:
					c ^= (unsigned)((float)c * 0.37f);
					a += (unsigned)((float)b * 0.37f);
					break;
				case 3:
					b = (unsigned)((float)c * 0.37f);
					break;
				}
			}
			break;
		case 6:
			for (unsigned i3 = 0; i3 < 6 && fuel; i3++) {
				fuel--;
				for (unsigned i4 = 0; i4 < 6 && fuel; i4++) {
					fuel--;
					c -= c;
					c ^= f2(c, b);
					b -= b;
				}
				if (305419896 < a && 255 & 3)
					return a;
				if ((c | a) < (b - c) && (a >> 15) & 3) {
					c += c;
				}
			}
			switch (c % 6) {
			case 0:
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					b ^= f0((b - a), (c >> 15));
					b ^= f2((unsigned)((float)a * 0.37f), b);
					c ^= f1((b + b), a);
				}
				if (!((c * c) % 4)) {
					b ^= b;
				} else {
					a -= c;
					c -= (b ^ a);
					a = c;
				}
				break;
			case 1:
				b ^= (a >> 8);
				break;
			case 2:
				b += 4096;
				break;
			case 3:
				if (c == (unsigned)((float)b * 0.37f)) {
					a ^= f1(b, (a >> 6));
				} else {
					a = a;
					a -= 305419896;
				}
				b ^= f1(a, c);
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					b += c;
					a ^= f2(65535, a);
				}
				break;
			case 4:
				switch ((c + a) % 5) {
				case 0:
					b = b;
					a ^= f1(a, (c * a));
					b ^= f2((a | c), (c + a));
					break;
				case 1:
					c ^= f1((b >> 8), 4096);
					c ^= f0(a, c);
					b = (unsigned)((float)a * 0.37f);
					break;
				case 2:
					b = (c >> 10);
					c = b;
					break;
				case 3:
					a ^= b;
					a -= a;
				case 4:
					b -= (unsigned)((float)c * 0.37f);
					c -= 4096;
					a = (b >> 1);
					break;
				case 5:
					a -= c;
					break;
				case 6:
					b = a;
					b ^= f0((unsigned)((float)a * 0.37f), b);
					break;
				case 7:
					a ^= (unsigned)((float)b * 0.37f);
					b += (unsigned)((float)c * 0.37f);
					b -= 65535;
					break;
				case 8:
					b = (a | c);
					c ^= f2(b, b);
					break;
				case 9:
					a = a;
					c -= (unsigned)((float)a * 0.37f);
					break;
				}
				break;
			case 5:
				for (unsigned i4 = 0; i4 < 2 && fuel; i4++) {
					fuel--;
					c ^= f2(255, 1);
					c ^= f1(305419896, c);
				}
				b -= c;
			case 6:
				b -= (unsigned)((float)a * 0.37f);
				for (unsigned i4 = 0; i4 < 4 && fuel; i4++) {
					fuel--;
					b -= (unsigned)((float)c * 0.37f);
					c = 4096;
				}
				a ^= (a >> 17);
			case 7:
				switch (1 % 9) {
				case 0:
					b -= 1;
					a ^= f0(a, c);
					break;
				case 1:
					a ^= a;
					a += b;
					c ^= 65535;
					break;
				case 2:
					a -= c;
					b ^= f0((c * c), (unsigned)((float)b * 0.37f));
					break;
				case 3:
					c += (a | c);
					b ^= f2((a >> 5), (c + c));
					break;
				case 4:
					a ^= f1(b, (unsigned)((float)a * 0.37f));
					break;
				case 5:
					a ^= f0(b, (b + c));
					break;
				}
				if ((unsigned)((float)b * 0.37f) < a && (c >> 10) & 3) {
					b = 0;
				}
			case 8:
				b = 1;
				switch ((a + c) % 11) {
				case 0:
					a -= (c | b);
					b += a;
					break;
				case 1:
					b ^= f2(c, (b >> 13));
					c += b;
					b += (c - b);
				case 2:
					b ^= a;
					a ^= f2(c, 255);
					break;
				case 3:
					b ^= 7;
					c += (c >> 4);
				case 4:
					a ^= c;
				}
				break;
			case 9:
				a -= c;
				if (c < (c >> 13) && (unsigned)((float)b * 0.37f) & 3) {
					b ^= f1(a, 65535);
					a ^= f2(a, (unsigned)((float)b * 0.37f));
				}
			case 10:
				switch (b % 5) {
				case 0:
					c ^= f1((unsigned)((float)c * 0.37f), c);
					a += (a >> 9);
					b ^= f2((b + b), b);
					break;
				case 1:
					a += 3;
					c ^= 7;
					break;
				case 2:
					b += (a + b);
					a ^= f1(0, b);
					a ^= (unsigned)((float)c * 0.37f);
					break;
				case 3:
					a -= a;
					break;
				case 4:
					a ^= f2(c, c);
					b ^= f0((unsigned)((float)a * 0.37f), 1);
				case 5:
					b -= (unsigned)((float)b * 0.37f);
				}
				if ((unsigned)((float)a * 0.37f) == c)
					continue;
				break;
			}
			if (!(c % 5))
				return b;
		case 7:
			if (4096 & 1)
				return (b >> 13);
			if (!((a + a) % 2)) {
				c = (b * a);
				b ^= f2((a | c), (a >> 19));
				a ^= (b >> 17);
			}
			for (unsigned i3 = 0; i3 < 2 && fuel; i3++) {
				fuel--;
				b = (c * b);
			}
			break;
		case 8:
			if (c == c)
				break;
			if ((b ^ c) & 4) {
				if (!(1 % 2)) {
					b ^= f2((a >> 9), (b | a));
				}
				for (unsigned i4 = 0; i4 < 2 && fuel; i4++) {
					fuel--;
					a = c;
					c += (b >> 11);
					a = a;
				}
				if ((c >> 12) & 1)
					continue;
			}
			for (unsigned i3 = 0; i3 < 3 && fuel; i3++) {
				fuel--;
				if ((c >> 8) < a && c & 3) {
					a = c;
					a = b;
				}
				a ^= 305419896;
				for (unsigned i4 = 0; i4 < 2 && fuel; i4++) {
					fuel--;
					a ^= f2(b, (c >> 3));
					a -= a;
					a -= (b & c);
				}
			}
		case 9:
			b ^= b;
			a ^= f1(a, a);
			if ((unsigned)((float)c * 0.37f) > c) {
				a -= b;
				if (a < a) {
					a -= b;
				} else {
					a ^= f0((a >> 15), b);
					a = b;
				}
			} else {
				if ((c >> 11) != c) {
					a ^= f0((c >> 4), (unsigned)((float)a * 0.37f));
				}
				b ^= f1(a, (a - b));
			}
			break;
		}
	}
	b ^= f1((unsigned)((float)b * 0.37f), (unsigned)((float)b * 0.37f));
	return a + b * 3 + c;
}
int main(void)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < 12; i++) {
		fuel = 150;
		sum = sum * 31 + f0(i * 77, sum);
		sum = sum * 31 + f1(i * 77, sum);
		sum = sum * 31 + f2(i * 77, sum);
		sum = sum * 31 + f3(i * 77, sum);
	}
	printf("%u\n", sum);
	return 0;
}
