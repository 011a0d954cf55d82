package method

import "fmt"

// Pipeline lists the choices that a run can take: those of the slot table for which nothing is missing.
func Pipeline() []Pick {
	var out []Pick
	for _, s := range slots {
		for _, c := range s.Choices {
			if c.Planned == "" {
				out = append(out, Pick{s.Name, c.Name})
			}
		}
	}
	return out
}

// Planned lists what is missing for the choices of the method that cannot run yet, in the order of the slot table.
func (m Method) Planned() []string {
	var missing []string
	for _, p := range m.Picks() {
		if text := p.Missing(); text != "" {
			missing = append(missing, text)
		}
	}
	return missing
}

// Missing says why a pick cannot run yet, or "".
func (p Pick) Missing() string {
	name := p.Slot + ": " + p.Choice
	if p.Choice == On {
		name = p.Slot
	}
	c, ok := p.choice()
	switch {
	case !ok:
		return name + ": the pipeline does not build it yet"
	case c.Planned != "":
		return fmt.Sprintf("%s: %s", name, c.Planned)
	}
	return ""
}
