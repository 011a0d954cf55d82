package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

func TestTheTableShowsAdvantagesAndTheCritic(t *testing.T) {
	p := Progress{Lines: []StepLine{
		{Step: 1},
		{Step: 2, Advantages: &schema.Advantages{Mean: -0.0125, Std: 0.75},
			Critic: &schema.CriticFigures{Loss: 0.03, ClipFraction: 0.25, Value: 0.5, Return: 0.625,
				ExplainedVariance: new(0.4)}},
	}}
	text := p.Markdown()
	require.Contains(t, text, "| tool errors | advantage | KL |")
	require.Contains(t, text, "| grad | critic |\n")
	require.Contains(t, text, "| – | -0.013 ± 0.750 | 0.00000 |")
	require.Contains(t, text, "| loss 0.0300, clipped 0.250, value 0.500 of return 0.625, explains 0.400 |\n")
	require.Contains(t, text, "| 1 | – | – | 0/0 | – | 0.0 |", "a step without data has no figures")
	cells := -1
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if cells >= 0 {
			require.Equal(t, cells, strings.Count(line, "|"), line)
		}
		cells = strings.Count(line, "|")
	}

	p.Lines = p.Lines[:1]
	require.NotContains(t, p.Markdown(), "critic")
}

func TestTheDetailsTellOfDevices(t *testing.T) {
	p := Progress{Lines: []StepLine{{Step: 1, Device: &api.DeviceUse{PeakBytes: 3 << 30, MFU: new(0.415),
		Utilisation: new(0.9), TokensPerSec: new(12345.6)}}}}
	require.Contains(t, p.Markdown(),
		"The last update's devices: 12346 tokens/s, MFU 41.5%, busy 90%, 3.0 GiB at most\n")
	p.Lines = append(p.Lines, StepLine{Step: 2})
	require.NotContains(t, p.Markdown(), "devices", "the CPU engine measures none")
}
