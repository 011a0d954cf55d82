package main

import (
	"os"
	"strconv"
)

// cacheVariable is the default of --cache-mb, for workers that the local stack starts.
const cacheVariable = "ROPEWALK_CACHE_MB"

// defaultCache is the read cache's default size in MiB: about a dozen steps of the quickstart.
const defaultCache = 256

// cacheBytes returns the size of the worker's read cache.
func (o workerOptions) cacheBytes() (int64, error) {
	size, name := o.cache, "--cache-mb"
	if text := os.Getenv(cacheVariable); size < 0 && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, badInput("%s is %q: want a number of MiB, 0 for no cache", cacheVariable, text)
		}
		size, name = n, cacheVariable
	}
	if size < 0 {
		size = defaultCache
	}
	const most = 1 << 20 // a TiB
	if size > most {
		return 0, badInput("%s is %d: want at most %d MiB", name, size, most)
	}
	return int64(size) << 20, nil
}
