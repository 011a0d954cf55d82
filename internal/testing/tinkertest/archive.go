package tinkertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// archive answers with an adapter, after a redirect.
func (s *Server) archive(w http.ResponseWriter, r *http.Request, call string) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v1/training_runs/")
	model, name, more := strings.Cut(strings.TrimSuffix(rest, "/"+call), "/checkpoints/")
	st, known := s.saved["tinker://"+model+"/"+name]
	if !ok || !more || !known || s.NoDownload {
		answer(w, http.StatusNotFound, map[string]any{"detail": "Not Found"})
		return
	}
	if call == "archive" {
		http.Redirect(w, r, strings.TrimSuffix(r.URL.Path, call)+"download", http.StatusFound)
		return
	}
	_, _ = w.Write(s.pack(st)) // the client may have gone
}

// pack writes an adapter as peft does, into a compressed archive.
func (s *Server) pack(st state) []byte {
	var tensors []checkpoint.Tensor
	for _, p := range st.tensors {
		module := "base_model.model." + strings.TrimSuffix(p.name, ".weight")
		tensors = append(tensors,
			checkpoint.Tensor{Name: module + ".lora_A.weight", Dims: []int{st.rank, p.in}, Data: p.a},
			checkpoint.Tensor{Name: module + ".lora_B.weight", Dims: []int{p.out, st.rank}, Data: p.b})
	}
	var weights, out bytes.Buffer
	require.NoError(s.t, checkpoint.EncodeSafetensors(&weights, tensors, nil))
	config, err := json.Marshal(map[string]any{"peft_type": "LORA", "r": st.rank, "lora_alpha": s.Alpha,
		"target_modules": nil, "bias": "none"})
	require.NoError(s.t, err)
	z := gzip.NewWriter(&out)
	archive := tar.NewWriter(z)
	for _, f := range []struct {
		name string
		data []byte
	}{{"./adapter_config.json", config}, {"./adapter_model.safetensors", weights.Bytes()}} {
		require.NoError(s.t, archive.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data))}))
		_, err := archive.Write(f.data)
		require.NoError(s.t, err)
	}
	require.NoError(s.t, archive.Close())
	require.NoError(s.t, z.Close())
	return out.Bytes()
}
