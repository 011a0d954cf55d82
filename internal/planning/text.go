package planning

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// String renders what one device of the engine holds.
func (m EngineMemory) String() string {
	var out []string
	add := func(name string, bytes int64) {
		if bytes > 0 {
			out = append(out, name+" "+Size(bytes))
		}
	}
	add("weights", m.Policy.Weights)
	add("gradients", m.Policy.Gradients)
	add("optimiser", m.Policy.Optimizer)
	add("activations", m.Policy.Activations)
	add("output head", m.Policy.Head)
	add("reference", m.Reference)
	add("critic", m.Critic)
	add("context", m.Context)
	text := strings.Join(out, ", ")
	if s := m.Sampling; s.RowCache > 0 {
		text += "; or, generating, "
		if s.Whole > 0 {
			text += "the whole model " + Size(s.Whole) + " and "
		}
		text += "keys and values of a row " + Size(s.RowCache)
	}
	return text
}

// WriteText writes the plan for people, without what does not fit.
func (p Plan) WriteText(to io.Writer) error {
	var b strings.Builder
	model := p.Model.Checkpoint
	if model == "" {
		model = "a new model"
	}
	fmt.Fprintf(&b, "plan\n  model      %s", model)
	if p.Model.Params > 0 {
		fmt.Fprintf(&b, ", %s parameters (%s)", count(float64(p.Model.Params)), p.Model.Source)
	}
	fmt.Fprintf(&b, "\n  devices    %s\n", p.Inventory)
	p.writeProcesses(&b)
	p.writePlacement(&b)
	p.writeStep(&b)
	p.writeBytes(&b)
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (p Plan) writeProcesses(b *strings.Builder) {
	fmt.Fprintf(b, "  processes\n")
	all := sumProcesses(p.Processes)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, x := range all {
		number := fmt.Sprintf("%d ×", x.Count)
		if x.Count == 0 {
			number = "some"
		}
		ports := "no port"
		if len(x.Ports) > 0 {
			ports = "ports " + strings.Join(x.Ports, ", ")
		}
		fmt.Fprintf(table, "    %s\t%s\t%s\t%s\t%s\n", number, x.Name, x.Host, ports, x.Starts)
	}
	_ = table.Flush()
	for _, x := range p.Processes {
		if x.Command != "" {
			fmt.Fprintf(b, "    start: %s\n", x.Command)
		}
	}
}

func (p Plan) writePlacement(b *strings.Builder) {
	if p.Memory != nil {
		unit := "each device of the engine"
		if p.Engine == "cpu" {
			unit = "the worker"
		}
		fmt.Fprintf(b, "  memory     %s takes %s (%s)\n", unit, Size(p.Memory.Total), p.Memory)
	}
	if len(p.Placement) == 0 {
		return
	}
	fmt.Fprintf(b, "  placement\n")
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, x := range p.Placement {
		need := "memory unknown"
		if x.Need > 0 {
			need = fmt.Sprintf("%s of %s", Size(x.Need), Size(x.Memory))
		}
		more := ""
		if s := x.Server; s != nil {
			more = fmt.Sprintf("\tweights %s, keys and values %s for %s tokens, %d of the longest rows",
				Size(s.Weights), Size(s.Cache), count(float64(s.Tokens)), s.Rows)
		}
		fmt.Fprintf(table, "    %s, device %d\t%s\t%s%s\n", x.Host, x.Device, x.What, need, more)
	}
	_ = table.Flush()
}

func (p Plan) writeStep(b *strings.Builder) {
	s := p.Step
	if s == nil {
		return
	}
	a := p.Assumed
	fmt.Fprintf(b, "  step       %d trajectories, of which at most %d are learnt from; %s tokens sampled, %s read, %s "+
		"trained (at %.0f%% of the budgets; at most %s sampled, %s trained)\n", s.Trajectories, s.Learnt,
		count(s.Sampled), count(s.Read), count(s.Trained), 100*a.Fill, count(float64(s.MostSampled)),
		count(float64(s.MostTrained)))
	fmt.Fprintf(b, "  flops      training %.3g, scoring %.3g\n", s.TrainingFlops, s.ScoringFlops)
	total, ok := s.Seconds()
	if !ok {
		fmt.Fprintf(b, "  time       not known for this engine: only that of GPUs is estimated\n")
		return
	}
	fmt.Fprintf(b, "  time       %s a step, by estimate: rollout %s (%d copies, %d rows at once each; %.0f%% of the "+
		"bandwidth), scoring %s, training %s (%.0f%% MFU)\n", duration(total), duration(*s.Rollout), s.Copies, s.AtOnce,
		100*a.MBU, duration(*s.Scoring), duration(*s.Training), 100*a.MFU)
}

func (p Plan) writeBytes(b *strings.Builder) {
	w := p.Writes
	if w == nil {
		return
	}
	fmt.Fprintf(b, "  written    object store: at most %s of tables a step, %s of checkpoint a step, at most %d "+
		"checkpoints at a time", Size(w.Rows), Size(w.Checkpoint), w.Kept)
	if w.Base > 0 {
		fmt.Fprintf(b, ", %s of the model once", Size(w.Base))
	}
	fmt.Fprintf(b, "; at most %s in all\n", Size(w.Run))
	for _, f := range w.Folders {
		fmt.Fprintf(b, "             %s: %s (two versions of the weights)\n", f.Path, Size(f.Bytes))
	}
}

// Size renders bytes for people.
func Size(bytes int64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes < 1<<40:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%.1f TiB", float64(bytes)/(1<<40))
}

func count(n float64) string {
	switch {
	case n < 1e4:
		return fmt.Sprintf("%.0f", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f k", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f M", n/1e6)
	}
	return fmt.Sprintf("%.2f G", n/1e9)
}

func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// sumProcesses joins processes that differ in their ports and commands alone.
func sumProcesses(all []Process) (out []Process) {
	for _, x := range all {
		if n := len(out) - 1; n >= 0 && out[n].Name == x.Name && out[n].Host == x.Host && out[n].Starts == x.Starts {
			out[n].Count += x.Count
			out[n].Ports = append(slices.Clone(out[n].Ports), x.Ports...)
			continue
		}
		out = append(out, x)
	}
	return out
}
