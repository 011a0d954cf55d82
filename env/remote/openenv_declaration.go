package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/secret"
)

// OpenEnv declares the environments of servers that speak OpenEnv's protocol.
var OpenEnv = env.Declaration{
	Name: "openenv", Doc: "an environment of a server that speaks OpenEnv's protocol", Source: "OpenEnv (openenv-core)",
	Interactive: true, Protocol: "think_action", Rewards: []string{"arlarena", "spear", "spear_agent"},
	Strings:  func() []string { return nil },
	Settings: env.SettingsOf[openEnvFields](),
	Wants: func(s env.Settings) string {
		if f, err := env.Read[openEnvFields](s); err != nil || f.URL != "" || f.Command != "" {
			return ""
		}
		return "url: names no server; set it to an address, or command to a program"
	},
	Starts: func(s env.Settings) string {
		f, _ := env.Read[openEnvFields](s) // "" if it cannot be read, as it cannot be opened either
		return f.Command
	},
	Open: openOpenEnv,
}

// openEnvFields are the settings in a recipe.
type openEnvFields struct {
	URL         string `json:"url" doc:"address of the server, such as http://host:8000; every worker reaches it. It may hold references to secrets" default:"\"\""`
	Command     string `json:"command" doc:"a program that every worker starts instead, a JSON list. {port} is the port of 127.0.0.1 that it must listen on" default:"\"\""`
	Env         string `json:"env" doc:"the program's variables, and no others, a JSON list: NAME is the worker's value; NAME=TEXT may hold references to secrets" default:"'[\"PATH\", \"HOME\"]'"`
	Headers     string `json:"headers" doc:"headers of each connection, a JSON list of NAME=TEXT; TEXT may hold references to secrets" default:"'[]'"`
	Action      string `json:"action" doc:"the server's action, a JSON object. In its texts {action} stands for what the policy writes, and a text that is {index} or {number} becomes the number of a named action or the number that the policy writes. {json}: the policy writes the object" default:"'{\"message\": \"{action}\"}'"`
	Observation string `json:"observation" doc:"the field of observations that the policy reads, a.b for a field of a field; empty for all fields as JSON" default:"\"\""`
	Success     string `json:"success" doc:"the field of observations that says whether an ended episode is a success; empty if success_from decides" default:"\"\""`
	Reset       string `json:"reset" doc:"further arguments of the reset, a JSON object; the task's seed is one already" default:"'{}'"`
	NullReward  string `json:"null_reward" doc:"what a step without a reward means: error excludes the trajectory, zero counts as 0. Servers of openenv-core also send none in place of NaN" default:"error" enum:"error|zero"`
	commonFields
}

// openOpenEnv makes the environment. No server is started or connected to before the first episode.
func openOpenEnv(o env.Options) (env.Environment, error) {
	f, err := env.Read[openEnvFields](o.Settings)
	if err != nil {
		return nil, err
	}
	port := &openEnvPort{step: f.step(), most: f.most(), shown: path(f.Observation), success: path(f.Success),
		nullIsZero: f.NullReward == "zero"}
	at, err := f.place()
	if err != nil {
		return nil, err
	}
	actions, err := named(f.Actions)
	if err != nil {
		return nil, err
	}
	if port.form, err = newForm(f.Action, actions); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(f.Reset), &port.reset); err != nil || port.reset == nil {
		return nil, fmt.Errorf("reset: must be a JSON object, got %s", f.Reset)
	}
	if _, ok := port.reset["seed"]; ok {
		return nil, fmt.Errorf("reset: seed is the task's, leave it out")
	}
	identity, err := json.Marshal([]any{f.URL, at.command, port.reset})
	if err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	if f.Tasks == 0 || f.HeldOut == 0 {
		return nil, errors.New("tasks, held_out: must be at least 1, because a server does not say how many it has")
	}
	port.what = "the OpenEnv server"
	port.start = func() (*server, error) { return at.start(f.idle()) }
	return New(port, f.settings("openenv", string(identity), actions)), nil
}

// place says where the server is. A recipe without one is valid, and cannot run.
func (f openEnvFields) place() (p place, err error) {
	if f.URL != "" && f.Command != "" {
		return p, fmt.Errorf("url: the server has either url or command")
	}
	p.url = f.URL
	for _, list := range []struct {
		name, text string
		to         *[]string
	}{{"command", f.Command, &p.command}, {"env", f.Env, &p.env}, {"headers", f.Headers, &p.headers}} {
		if list.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(list.text), list.to); err != nil {
			return p, fmt.Errorf("%s: must be a JSON list of texts, got %s", list.name, list.text)
		}
		for _, text := range *list.to {
			if fault := secret.Malformed(text); fault != "" {
				return p, fmt.Errorf("%s: %s", list.name, fault)
			}
		}
	}
	if f.Command != "" && (len(p.command) == 0 || p.command[0] == "" ||
		!slices.ContainsFunc(p.command, func(word string) bool { return strings.Contains(word, portMark) })) {
		return p, fmt.Errorf("command: must be a program and its arguments, one of which holds %s", portMark)
	}
	for _, h := range p.headers {
		if name, _, ok := strings.Cut(h, "="); !ok || name == "" {
			return p, fmt.Errorf("headers: must list NAME=TEXT, got %q", h)
		}
	}
	if fault := secret.Malformed(f.URL); fault != "" {
		return p, fmt.Errorf("url: %s", fault)
	}
	if fault := secret.Literal(f.URL); fault != "" {
		return p, fmt.Errorf("url: %s", fault)
	}
	u, err := url.Parse(secret.Masked(f.URL))
	if f.URL != "" && (err != nil || schemes[u.Scheme] == "" || u.Host == "") {
		return p, fmt.Errorf("url: must be an address that begins with http://, https://, ws:// or wss://")
	}
	return p, nil
}

// path splits the name of a field of a field; nil for "".
func path(field string) []string {
	if field == "" {
		return nil
	}
	return strings.Split(field, ".")
}
