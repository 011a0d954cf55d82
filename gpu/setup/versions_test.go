package setup

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		torch, transformers, safetensors string
		want                             string
	}{
		{"2.11.0", "5.17.0", "0.4.0", ""},
		{"2.15.0+cu130", "5.23.0.dev0", "0.8.0", ""},
		{"3.0.0a0+git1", "10.0", "1.0", ""},
		{"2.10.9", "5.17", "0.8.0", "torch 2.10.9, needed is 2.11 or newer"},
		{
			"2.9.1", "5.2.0", "0.8.0",
			"torch 2.9.1, needed is 2.11 or newer; transformers 5.2.0, needed is 5.17 or newer",
		},
		{"", "4.57.1", "", "no torch and no safetensors; transformers 4.57.1, needed is 5.17 or newer"},
		{"nightly", "5.23", "0.8", "torch nightly, needed is 2.11 or newer"},
	} {
		err := Check(map[string]string{"torch": c.torch, "transformers": c.transformers, "safetensors": c.safetensors})
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
	}
	found := map[string]string{"torch": "2.15.0", "transformers": "5.23.0", "safetensors": "0.8.0"}
	require.NoError(t, Check(found))
	require.EqualError(t, Check(found, Peft()), "no peft")
	found["peft"] = "0.19.1"
	require.EqualError(t, Check(found, Peft()), "peft 0.19.1, needed is 0.20 or newer")
	found["peft"] = "0.20.0"
	require.NoError(t, Check(found, Peft()))
}
