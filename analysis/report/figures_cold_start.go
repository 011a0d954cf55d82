package report

// coldStart compares the policies before and after a warm start on the form of calls.
var coldStart = figure{
	id: "cold-start", title: "What the warm start changed",
	note: "Held-out episodes of the policy before the warm start and of the one after it. Demonstrations of the form " +
		"alone should raise the validity of calls and not success (rStar2 Table 1). An episode counts as valid if it " +
		"calls and every call of it decodes, of a tool and with arguments that there are. Brackets are 95% intervals.",
	draw: func(d data, f *Figure) error {
		c := d.cold
		calls, success := c.Verdicts()
		f.Table = &Table{Columns: []string{"share of episodes", "before", "after", "verdict"}, Text: true,
			Rows: [][]string{
				{"valid calls", c.Before.Calls.Rate.String(), c.After.Calls.Rate.String(), calls},
				{"success", c.Before.Success.String(), c.After.Success.String(), success},
			}}
		return nil
	},
}
