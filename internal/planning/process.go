package planning

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
)

// Process is one process of the run, or several equal ones.
type Process struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Host  string   `json:"host"`
	Ports []string `json:"ports,omitempty"` // on which it listens
	// Starts says who starts it; a user by Command.
	Starts  string `json:"starts"`
	Command string `json:"command,omitempty"`
}

// Who starts a process.
const (
	byRun  = "started by ropewalk run, or your own"
	byUser = "you start it before the run"
	byWork = "started by the worker"
)

// processes lists what runs, in the order in which it starts. The ports of the local stack are preferences: a port that
// is taken is replaced by a free one.
func processes(in Input, all []served) []Process {
	r := in.Recipe
	here := "this host"
	if len(in.Inventory.Hosts) > 0 {
		here = in.Inventory.Hosts[0].Name
	}
	out := []Process{
		{Name: "temporal (workflows, web page)", Count: 1, Host: here, Ports: []string{"7233", "8233"}, Starts: byRun},
		{Name: "versitygw (object store)", Count: 1, Host: here, Ports: []string{"7070"}, Starts: byRun},
		{Name: "ropewalk worker (cpu, gpu, rollout, sandbox)", Count: 1, Host: here, Starts: byRun},
	}
	if hosts := max(1, r.Engine.Hosts); engines.Named(in.Kind).Devices {
		if hosts > 1 {
			out[2].Count = hosts
			out[2].Host = fmt.Sprintf("each of %d hosts", hosts)
			out[2].Ports = []string{"one that the system chooses, for the other hosts"}
			out[2].Starts = byUser
			out[2].Command = "ropewalk worker --queues gpu,rollout"
		}
		n := ranks(r.Engine)
		p := Process{Name: "PyTorch engine", Count: n, Host: here, Starts: byWork}
		if n > 1 {
			p.Name, p.Ports = "PyTorch engine, a rank for each device", []string{"some that the system chooses"}
		}
		if hosts > 1 {
			p.Host = fmt.Sprintf("%d on each of %d hosts", max(1, r.Engine.Devices), hosts)
		}
		out = append(out, p)
	}
	if r.Environment.Declaration().Sandboxed || len(r.Rollout.ToolNames()) > 0 {
		out = append(out, Process{Name: "Python interpreters of the sandbox", Count: 0, Host: here, Starts: byWork})
	}
	for _, s := range all {
		out = append(out, serverProcess(in, s))
	}
	if r.Judge != nil {
		out = append(out, Process{Name: "judge " + r.Judge.Model, Count: 1, Host: r.Judge.URL, Starts: byUser})
	}
	for _, m := range r.Rollout.MCP {
		out = append(out, Process{Name: "tools of " + m.Name + " (MCP)", Count: 1, Host: here, Starts: byWork})
	}
	return out
}

func serverProcess(in Input, s served) Process {
	out := Process{Name: s.server.Kind + " server", Count: 1, Host: s.host, Starts: byUser}
	port := ""
	if u, err := url.Parse(s.server.URL); err == nil && u.Port() != "" {
		port = u.Port()
		out.Ports = []string{port}
	}
	out.Command = command(in.Recipe, s, port)
	return out
}

// command is how a server of a kind is started for the recipe; "" of kind openai, which may be anything.
func command(r *recipes.Recipe, s served, port string) string {
	var words []string
	if n := len(s.devices); n > 0 {
		ids := make([]string, n)
		for i, d := range s.devices {
			ids[i] = fmt.Sprint(d)
		}
		words = append(words, "CUDA_VISIBLE_DEVICES="+strings.Join(ids, ","))
	}
	longest, model := fmt.Sprint(longestRow(r)), "MODEL"
	add := func(more ...string) { words = append(words, more...) }
	switch s.server.Kind {
	case servers.KindVLLM:
		add("VLLM_SERVER_DEV_MODE=1", "vllm", "serve", model, "--logprobs-mode", "processed_logprobs",
			"--generation-config", "vllm", "--max-model-len", longest, "--max-num-seqs", fmt.Sprint(s.server.Parallel))
		if len(s.devices) > 1 {
			add("--tensor-parallel-size", fmt.Sprint(len(s.devices)))
		}
		if s.server.Dtype == "bfloat16" {
			add("--dtype", "bfloat16")
		} else {
			add("--dtype", "float32")
		}
	case servers.KindSGLang:
		add("python", "-m", "sglang.launch_server", "--model-path", model, "--context-length", longest)
		if len(s.devices) > 1 {
			add("--tp", fmt.Sprint(len(s.devices)))
		}
	case servers.KindLlama:
		add("llama-server", "--models-dir", s.server.Folder, "--cache-type-k", "f32", "--cache-type-v", "f32", "-fa",
			"off", "--parallel", fmt.Sprint(s.server.Parallel))
	case servers.KindRopewalk:
		add("ropewalk", "serve", model, "--allow-load", "--max-model-len", longest)
		if port != "" {
			add("--listen", "127.0.0.1:"+port)
		}
		return strings.Join(words, " ")
	default:
		return ""
	}
	if s.server.Kind != servers.KindLlama && addressOf(s.server) != "" { // llama-server listens on loopback by itself
		add("--host", addressOf(s.server))
	}
	if port != "" {
		add("--port", port)
	}
	return strings.Join(words, " ")
}
