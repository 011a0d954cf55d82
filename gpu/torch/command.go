package torch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	program "github.com/ropewalk/ropewalk/gpu/engine"
)

// The environment variables with which the engine finds its host.
const (
	socketVariable = "ROPEWALK_ENGINE_SOCKET"
	nonceVariable  = "ROPEWALK_ENGINE_NONCE"
)

// command is the engine's command line. torchrun starts each of several ranks with the command line of a single
// process. Python is isolated (-I): neither the user's packages nor PYTHON* variables nor the current folder reach the
// engine.
func (o Options) commandLine(main string) []string {
	if o.command != nil {
		return o.command
	}
	engine := []string{
		o.Python, "-I", main, "--device", o.Device, "--dtype", o.Dtype, "--checkpointing", o.Checkpointing, "--threads",
		strconv.Itoa(o.Threads),
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
	line := append([]string{o.Python, "-I", filepath.Join(filepath.Dir(main), program.Agent)}, o.meet.flags()...)
	return slices.Concat(
		line, []string{"--nproc-per-node", strconv.Itoa(o.Ranks), "--max-restarts", "0", "--no-python"}, engine,
	)
}

// sharded reports whether several ranks share each model, which torchrun starts.
func (o Options) sharded() bool { return o.Ranks > 1 || o.Hosts > 1 }

// newCommand makes the command, which leads its own process group and dies with this process. The kernel watches the
// thread that forks, so that thread must live as long (see spawn).
func (o Options) newCommand(main, dir, socket, nonce string) *exec.Cmd {
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

// passed are the variables that the engine inherits, by name or, with a star, by prefix. They locate libraries, devices
// and caches. No other variable of the host is passed on, above all no credentials.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "XDG_CACHE_HOME",
	"CUDA_*", "CUDNN_*", "CUBLAS_*", "NVIDIA_*", "NCCL_*",
	"GLOO_*", "TORCH_*", "TORCHINDUCTOR_*", "PYTORCH_*", "TRITON_*", "OMP_*", "MKL_*", "GOMP_*", "KMP_*",
}

// secret marks names that are never passed on, whatever their prefix.
var secret = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"}

// environment returns the host's variables that the engine inherits, and those that it must have.
func (o Options) environment(host []string, dir string) []string {
	env := slices.DeleteFunc(slices.Clone(host), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return !slices.ContainsFunc(passed, func(p string) bool { return matches(p, name) }) ||
			slices.ContainsFunc(secret, func(s string) bool { return strings.Contains(name, s) })
	})
	env = append(
		env, "TMPDIR="+dir, "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "TOKENIZERS_PARALLELISM=false",
		"OMP_NUM_THREADS="+strconv.Itoa(o.Threads),
	)
	if cache := kernelCache(env); cache != "" {
		env = append(env, compiledVariable+"="+cache)
	}
	switch {
	case o.Device == CPU:
		env = append(env, "CUDA_VISIBLE_DEVICES=")
		// On a machine with other load, threads that spin while they wait take the core from the thread that they wait
		// for. Measured, this costs a tenth of the speed.
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

// kernelCache returns the folder where compiled kernels outlive the process, unless the host names one. Without it
// PyTorch would keep them in the process's temporary folder, and each start would spend most of a minute compiling
// again.
func kernelCache(env []string) string {
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
