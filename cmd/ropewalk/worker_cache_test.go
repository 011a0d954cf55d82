package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheBytes(t *testing.T) {
	for _, test := range []struct {
		flag int
		env  string
		want int64
		err  string
	}{
		{-1, "", 256 << 20, ""},
		{-1, "64", 64 << 20, ""},
		{-1, "0", 0, ""},
		{0, "64", 0, ""},
		{8, "64", 8 << 20, ""},
		{-1, "-1", 0, "ROPEWALK_CACHE_MB"},
		{-1, "some", 0, "ROPEWALK_CACHE_MB"},
		{1<<20 + 1, "", 0, "--cache-mb"},
		{-1, "9999999", 0, "ROPEWALK_CACHE_MB"},
	} {
		t.Setenv(cacheVariable, test.env)
		got, err := workerOptions{cache: test.flag}.cacheBytes()
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%+v", test)
	}
}
