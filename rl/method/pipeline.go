package method

// Pipeline lists the choices that a run can take: those of the slot table.
func Pipeline() []Pick {
	var out []Pick
	for _, s := range slots {
		for _, c := range s.Choices {
			out = append(out, Pick{s.Name, c.Name})
		}
	}
	return out
}
