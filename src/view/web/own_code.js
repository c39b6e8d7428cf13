// SPDX-License-Identifier: Apache-2.0
// Which code is the program's own: allocators, the C library, the kernel and what is made of headers of a language's
// library are not. People look for what they can change.

import {baseName} from "./format.js";
import {KIND, cached, scopeFile, scopeName} from "./model.js";

const LIBRARY = new RegExp("^(ld-linux[-\\w]*|ld-musl[-\\w]*|libc|libc\\+\\+(abi)?|libstdc\\+\\+|libgcc_s|libm|libpthread|" +
	"libjemalloc|libtcmalloc(_\\w+)?|libmimalloc)(-[\\d.]+)?\\.so");
const LIBRARY_FILE = /(^|\/)include\/c\+\+\/|^\/usr\/(local\/)?include\/|\/rustc\/[0-9a-f]+\/library\/|\/rustlib\/src\//;
const ALLOCATOR = new RegExp("^(operator new\\b|(__|_)?(libc_)?(malloc|calloc|realloc|reallocarray|memalign|posix_memalign|" +
	"aligned_alloc|valloc|pvalloc|strdup|strndup|mmap(64)?)$|x(malloc|calloc|realloc|strdup)$|g_(try_)?(malloc|realloc)|" +
	"std::|__gnu_cxx::|alloc::|core::)");

// By scope: 1 where it is the program's own code.
function ownCode(model) {
	const {kind, count} = model.scopes, own = new Uint8Array(count), modules = model.header.modules.map(({path, kind: what}) =>
		what === "kernel" || LIBRARY.test(baseName(path)) ? 0 : 1);
	for (let s = 1; s < count; s++)
		own[s] = (kind[s] === KIND.function || kind[s] === KIND.inline) && modules[model.scopes.module[s]] &&
			!LIBRARY_FILE.test(scopeFile(model, s)) && !ALLOCATOR.test(scopeName(model, s)) ? 1 : 0;
	return own;
}

// By node: the node of the own code that it is in or that called it (0: none), and the line of that from which it was
// called (0: not known; of own code itself -1: that of the sample).
export function ownNodes(model) {
	return cached(model, "own code", () => findOwnNodes(model));
}

function findOwnNodes(model) {
	const {parent, scope, call, count} = model.nodes, {kind} = model.scopes, own = ownCode(model);
	const node = new Int32Array(count), line = new Int32Array(count).fill(-1);
	for (let i = 1; i < count; i++) {
		const up = parent[i];
		if (kind[scope[i]] === KIND.loop || !own[scope[i]]) {
			node[i] = node[up];
			line[i] = kind[scope[i]] === KIND.loop || line[up] >= 0 ? line[up] : call[i];
		} else {
			node[i] = i;
		}
	}
	return {node, line};
}
