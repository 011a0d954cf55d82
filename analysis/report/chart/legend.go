package chart

// Key explains one series' mark.
type Key struct {
	Name  string
	Color int
	Mark  string // line, dashed, dot, column
}

// Legend explains the series of a chart; nil for a single line, which the axis names.
func (c Chart) Legend() []Key {
	if len(c.Lines) < 2 && len(c.Stack) == 0 {
		return nil
	}
	var out []Key
	for _, s := range c.Lines {
		mark := "line"
		switch {
		case s.Points:
			mark = "dot"
		case s.Dashed:
			mark = "dashed"
		}
		out = append(out, Key{s.Name, s.Color, mark})
	}
	for _, s := range c.Stack {
		out = append(out, Key{s.Name, s.Color, "column"})
	}
	return out
}
