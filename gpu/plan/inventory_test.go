package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeclaredParts(t *testing.T) {
	i, err := Declared("h200x8")
	require.NoError(t, err)
	require.Len(t, i.Hosts, 1)
	require.Len(t, i.Hosts[0].Devices, 8)
	require.Equal(t, Device{Index: 7, Name: "H200", Memory: 140 << 30, Flops: 989e12, Bandwidth: 4.8e12},
		i.Hosts[0].Devices[7])
	require.Equal(t, "host 1: 8 × H200 of 140.0 GiB (declared: h200x8)", i.String())

	i, err = Declared("H100x4+l40sx2, a100-sxm4-40gbx2")
	require.NoError(t, err)
	require.Equal(t, 8, i.Devices())
	require.Equal(t, "host 1: 4 × H100 of 79.0 GiB + 2 × L40S of 44.0 GiB; host 2: 2 × A100-SXM4-40GB of 39.0 GiB "+
		"(declared: H100x4+l40sx2, a100-sxm4-40gbx2)", i.String())
	require.Equal(t, 5, i.Hosts[0].Devices[5].Index)
}

func TestDeclaredFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "odd.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`
hosts:
  - name: a
    memory_gib: 512
    devices:
      - {name: NVIDIA H200, count: 2}
      - {name: prototype, memory_gib: 48, tflops: 200, bandwidth_gbs: 900}
  - devices: [{name: l4, memory_gib: 20.5}]
`)
	i, err := Declared(file)
	require.NoError(t, err)
	require.Equal(t, Inventory{Source: "declared: " + file, Hosts: []Host{
		{Name: "a", Memory: 512 << 30, Devices: []Device{
			{Index: 0, Name: "NVIDIA H200", Memory: 140 << 30, Flops: 989e12, Bandwidth: 4.8e12},
			{Index: 1, Name: "NVIDIA H200", Memory: 140 << 30, Flops: 989e12, Bandwidth: 4.8e12},
			{Index: 2, Name: "prototype", Memory: 48 << 30, Flops: 200e12, Bandwidth: 900e9},
		}},
		{Name: "host 2", Devices: []Device{{Name: "l4", Memory: 41 << 29, Flops: 121e12, Bandwidth: 300e9}}},
	}}, i)

	write(`{"driver": {"version": "580.1"}, "engine": {"kind": "torch", "why": ""}, "devices": [
		{"index": 0, "name": "NVIDIA A100-SXM4-80GB", "memory": {"total_bytes": 85899345920, "free_bytes": 80000000000}},
		{"index": 1, "name": "unheard of", "memory": {"total_bytes": 1000, "free_bytes": null}}]}`)
	i, err = Declared(file)
	require.NoError(t, err)
	require.Equal(t, []Device{
		{Index: 0, Name: "NVIDIA A100-SXM4-80GB", Memory: 80000000000, Flops: 312e12, Bandwidth: 2.039e12},
		{Index: 1, Name: "unheard of", Memory: 1000},
	}, i.Hosts[0].Devices)
}

func TestBadInventories(t *testing.T) {
	for text, want := range map[string]string{
		"":                     `"" is neither PARTxN, such as h200x8, nor a file`,
		"h200":                 `"h200" is neither PARTxN`,
		"h200x0":               `"h200x0" declares no device`,
		"h200x9999":            `"h200x9999" is neither PARTxN`,
		"tpux8":                `there is no part "tpu": name one of b300, gb200,`,
		"b300x8":               "the memory of b300 is not known here",
		"h200x8+":              `"" is neither PARTxN`,
		"/nowhere/at/all.yaml": "no such file",
		"nowhere.json":         "no such file",
		strings.TrimSuffix(strings.Repeat("h200x999,", 5), ","): "more than 4096 devices",
	} {
		_, err := Declared(text)
		require.ErrorContains(t, err, want, text)
	}
	file := filepath.Join(t.TempDir(), "bad.json")
	for text, want := range map[string]string{
		"{}":                               "neither hosts nor the devices",
		"[1]":                              "bad.json: line 1: must be a mapping, got a list",
		"hosts: [":                         "bad.json",
		"hosts: [{devices: 3}]":            "bad.json: line 1: must be a list, got 3",
		"hosts: [{devices: [{count: 2}]}]": "hosts[0].devices[0]: name is absent",
		"hosts: [{devices: [{name: x}]}]":  "x: memory_gib is absent, and the part is unknown",
		"hosts: [{devices: [{name: h200, count: 0}]}]":              "count must be from 1 to 4096, got 0",
		"hosts: [{devices: [{name: h200, memory: 3}]}]":             "memory is unknown; there are name, count",
		"hosts: [{devices: [{name: h200, memory_gib: -1}]}]":        "memory_gib must be from 0",
		"hosts: [{devices: [{name: h200, memory_gib: .nan}]}]":      "memory_gib must be from 0",
		"hosts: [{devices: [{name: h200, tflops: -1}]}]":            "tflops must be positive",
		"hosts: [{devices: [{name: h200, bandwidth_gbs: .inf}]}]":   "bandwidth_gbs must be positive",
		"hosts: [{memory_gib: -2, devices: [{name: h200}]}]":        "hosts[0].memory_gib must be",
		"{hosts: [{devices: [{name: h200}]}], devices: [{}]}":       "it has hosts, and devices outside of them",
		`{"devices": [{"name": "NVIDIA H200", "memory": {}}]}`:      "devices[0]: NVIDIA H200 states no memory",
		"{hosts: [{devices: [{name: h200}]}], inventory: [h200x8]}": "inventory is unknown; there is hosts",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Declared(file)
		require.ErrorContains(t, err, want, text)
	}
}
