package export

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// toolsOf returns what chat templates list as the tools of a run's rollouts; nil if calls are no messages of the
// protocol's conversations, or if there are none.
func toolsOf(ctx context.Context, view *analysis.Visible, name string) (json.RawMessage, error) {
	p, err := protocolOf(name)
	if err != nil || !slices.Contains(p.Spec().Tags, "tool_call") {
		return nil, nil // a record of another version may name an unknown protocol
	}
	var recipe struct {
		Rollout recipes.Rollout `json:"rollout"`
	}
	if err := view.Recipe(ctx, &recipe); err != nil {
		return nil, err
	}
	declared, err := recipe.Rollout.Declared()
	if err != nil {
		return nil, fmt.Errorf("read the run's tools: %w", err)
	}
	listed := rollout.Settings{Tools: tools.Specs(declared)}.Prompted()
	if len(listed) == 0 {
		return nil, nil
	}
	signatures := make([]string, len(listed))
	for i, t := range listed {
		if t.Name == protocol.Python.Name {
			t = protocol.Python
			if _, rstar2 := p.(protocol.RStar2); rstar2 {
				t.Name = protocol.ToolName
			}
		}
		signatures[i] = t.Signature()
	}
	return json.RawMessage("[" + strings.Join(signatures, ",") + "]"), nil
}

// withObjects returns a message whose calls have objects as arguments. Arguments that are no JSON object stay texts. A
// message without calls stays as it is.
func withObjects(raw json.RawMessage) (json.RawMessage, error) {
	var m, one, function map[string]json.RawMessage
	var calls []json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	if json.Unmarshal(m["tool_calls"], &calls) != nil || len(calls) == 0 {
		return raw, nil
	}
	for i, call := range calls {
		var text string
		one, function = nil, nil
		if json.Unmarshal(call, &one) != nil || json.Unmarshal(one["function"], &function) != nil ||
			json.Unmarshal(function["arguments"], &text) != nil || !isObject(text) {
			continue
		}
		var err error
		function["arguments"] = json.RawMessage(text)
		if one["function"], err = encode(function); err != nil {
			return nil, err
		}
		if calls[i], err = encode(one); err != nil {
			return nil, err
		}
	}
	var err error
	if m["tool_calls"], err = encode(calls); err != nil {
		return nil, err
	}
	return encode(m)
}

func isObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}
