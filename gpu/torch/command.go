package torch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Variables by which the engine finds its host.
const (
	socketVariable = "ROPEWALK_ENGINE_SOCKET"
	nonceVariable  = "ROPEWALK_ENGINE_NONCE"
)

// command is the engine's command line. Ranks are started by torchrun, each as the one process is. Python is isolated
// (-I): neither the user's packages nor PYTHON* variables nor the current folder reach the engine.
func (o Options) commandLine(main string) []string {
	if o.command != nil {
		return o.command
	}
	engine := []string{
		o.Python, "-I", main, "--device", o.Device, "--dtype", o.Dtype, "--checkpointing", o.Checkpointing, "--threads", strconv.Itoa(o.Threads),
	}
	if o.Deterministic {
		engine = append(engine, "--deterministic")
	}
	if o.OffloadOptimizer {
		engine = append(engine, "--offload-optimizer")
	}
	engine = append(engine, o.LoRA.flags()...)
	if !o.sharded() {
		return engine
	}
	line := append([]string{o.Python, "-I", "-m", "torch.distributed.run"}, o.meet.flags()...)
	return slices.Concat(line, []string{"--nproc-per-node", strconv.Itoa(o.Ranks), "--max-restarts", "0", "--no-python"}, engine)
}

// sharded reports whether several ranks share each model, which torchrun starts.
func (o Options) sharded() bool { return o.Ranks > 1 || o.Hosts > 1 }

// start makes the command: a process group of its own that dies with this process. The kernel watches the thread
// that forks, which therefore has to live as long (see spawn).
func (o Options) startable(main, dir, socket, nonce string) *exec.Cmd {
	line := o.commandLine(main)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = dir
	cmd.Env = o.environment(os.Environ(), dir)
	if socket != "" {
		cmd.Env = append(cmd.Env, socketVariable+"="+socket, nonceVariable+"="+nonce)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// passed are the variables that the engine inherits, by name or, with a star, by how they begin: what finds
// libraries, devices and caches. Whatever else the host has (credentials above all) stays with it.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "CUDA_*", "CUDNN_*", "CUBLAS_*", "NVIDIA_*", "NCCL_*",
	"GLOO_*", "TORCH_*", "TORCHINDUCTOR_*", "PYTORCH_*", "TRITON_*", "OMP_*", "MKL_*", "GOMP_*", "KMP_*",
}

// secret marks names that are never passed on, whatever they begin with.
var secret = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"}

// environment is what of the host's variables the engine gets, and what it must have.
func (o Options) environment(host []string, dir string) []string {
	env := slices.DeleteFunc(slices.Clone(host), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return !slices.ContainsFunc(passed, func(p string) bool { return matches(p, name) }) ||
			slices.ContainsFunc(secret, func(s string) bool { return strings.Contains(name, s) })
	})
	env = append(env, "TMPDIR="+dir, "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "TOKENIZERS_PARALLELISM=false", "OMP_NUM_THREADS="+strconv.Itoa(o.Threads))
	if cache := compiled(env); cache != "" {
		env = append(env, compiledVariable+"="+cache)
	}
	switch {
	case o.Device == CPU:
		env = append(env, "CUDA_VISIBLE_DEVICES=")
		// Threads that spin while they wait for each other keep the one that is waited for off its core, where other
		// programs want the cores too: measured, a tenth of the pace.
		if !slices.ContainsFunc(env, func(line string) bool { return strings.HasPrefix(line, "OMP_WAIT_POLICY=") }) {
			env = append(env, "OMP_WAIT_POLICY=PASSIVE")
		}
	case len(o.UUIDs) > 0:
		env = append(env, "CUDA_VISIBLE_DEVICES="+strings.Join(o.UUIDs, ","))
	}
	if o.meet != nil {
		env = append(env, o.meet.environment(env)...)
	}
	if o.Deterministic {
		env = append(env, "CUBLAS_WORKSPACE_CONFIG=:4096:8")
	}
	return env
}

// compiledVariable names the folder of compiled kernels.
const compiledVariable = "TORCHINDUCTOR_CACHE_DIR"

// compiled is where compiled kernels outlive the process, unless the host has said where: to compile them anew costs each
// start the better part of a minute, and PyTorch would keep them in the process's own temporary folder.
func compiled(env []string) string {
	value := map[string]string{}
	for _, line := range env {
		name, v, _ := strings.Cut(line, "=")
		value[name] = v
	}
	switch {
	case value[compiledVariable] != "":
		return ""
	case value["XDG_CACHE_HOME"] != "":
		return filepath.Join(value["XDG_CACHE_HOME"], "ropewalk", "torchinductor")
	case value["HOME"] != "":
		return filepath.Join(value["HOME"], ".cache", "ropewalk", "torchinductor")
	}
	return ""
}

func matches(pattern, name string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, begin)
	}
	return pattern == name
}
