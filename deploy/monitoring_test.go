package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// alert is an alert of monitoring/alerts.yml.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

const manual = "../docs/operate.md"

// pages returns the manual's page of each alert, and their order.
func pages(text string) (of map[string]string, order []string) {
	of = map[string]string{}
	heading := regexp.MustCompile(`(?m)^#{1,6} .*$`)
	found := heading.FindAllStringIndex(text, -1)
	for i, at := range found {
		name, isAlert := strings.CutPrefix(text[at[0]:at[1]], "### Ropewalk")
		if !isAlert {
			continue
		}
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		of["Ropewalk"+name] = text[at[1]:end]
		order = append(order, "Ropewalk"+name)
	}
	return of, order
}

// Every alert has a page in the manual, every page an alert, in one order, and the alert's runbook is a link to its
// page. A page says what the alert means and what to type, and names the thresholds that decide.
func TestEveryAlertHasItsPage(t *testing.T) {
	text, err := os.ReadFile("monitoring/alerts.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	written, err := os.ReadFile(manual)
	require.NoError(t, err)
	page, order := pages(string(written))
	limits, err := os.ReadFile("monitoring/thresholds.yml")
	require.NoError(t, err)
	var names []string
	for _, g := range file.Groups {
		for _, a := range g.Rules {
			names = append(names, a.Alert)
			require.NotContains(t, names[:len(names)-1], a.Alert, "two alerts have one name")
			require.Contains(t, []string{"warning", "critical"}, a.Labels["severity"], a.Alert)
			require.Equal(t, "docs/operate.md#"+strings.ToLower(a.Alert), a.Annotations["runbook"], a.Alert)
			require.NotEmpty(t, a.Annotations["summary"], a.Alert)
			require.NotEmpty(t, a.Annotations["action"], a.Alert)
			body, code, typed := strings.Cut(page[a.Alert], "\n```")
			require.True(t, typed && strings.TrimSpace(code) != "", "%s: its page in %s says what to type", a.Alert,
				manual)
			require.NotEmpty(t, strings.TrimSpace(body), "%s: its page in %s says what it means", a.Alert, manual)
			for _, m := range regexp.MustCompile(`ropewalk:threshold:(\w+)`).FindAllStringSubmatch(a.Expr, -1) {
				require.Contains(t, page[a.Alert], "`"+m[1]+"`", "%s: its page names the threshold", a.Alert)
				require.Contains(t, string(limits), "record: "+m[0]+"\n", "%s: thresholds.yml has it", a.Alert)
			}
		}
	}
	require.Equal(t, names, order, "the alerts of alerts.yml, and the pages of %s", manual)
}
