package report_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
)

// chromium is the browser's path; without one the test is skipped, or fails where
// ROPEWALK_REQUIRE_CHROMIUM is set.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("ROPEWALK_REQUIRE_CHROMIUM") != "" {
		t.Fatal("ROPEWALK_REQUIRE_CHROMIUM is set and there is no chromium on PATH")
	}
	t.Skip("there is no chromium on PATH")
	return ""
}

// loaded is the page's DOM after its script ran, without a network.
func loaded(t *testing.T, browser, file, fragment string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	address := url.URL{Scheme: "file", Path: file, Fragment: fragment}
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage",
		"--proxy-server=127.0.0.1:1", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=3000", "--dump-dom",
		address.String())
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	require.NoError(t, err, messages.String())
	return string(out)
}

// probe clicks the switch and writes what the tokens then look like into the page.
const probe = `<script>
(() => {
  const token = document.querySelector(
    "#episodes .w.l9, #episodes .w.l8, #episodes .w.l7, #episodes .w.l6, #episodes .w.l5");
  const said = [];
  for (const by of ["logprob", "entropy", "advantage", "none"]) {
    document.querySelector("input[name=colour][value=" + by + "]").click();
    const shown = [...document.querySelectorAll(".scale")].filter((s) => !s.hidden).map((s) => s.dataset.for).join("+");
    said.push(by + "=" + document.getElementById("episodes").dataset.colour + "|" +
      getComputedStyle(token).backgroundColor + "|" + shown);
  }
  const width = document.documentElement.scrollWidth <= window.innerWidth;
  const tall = [...document.querySelectorAll("figure svg")].every((s) => s.getBoundingClientRect().height > 60);
  const full = [...document.querySelectorAll("main .figures")].every((grid) => {
    const rows = {};
    for (const card of grid.querySelectorAll("figure")) {
      const place = card.getBoundingClientRect();
      rows[Math.round(place.top)] = (rows[Math.round(place.top)] || -16) + place.width + 16;
    }
    return Object.values(rows).every((w) => Math.abs(w - grid.getBoundingClientRect().width) < 2);
  });
  document.body.dataset.probed = said.join(";") + ";fits=" + width + ";tall=" + tall + ";full=" + full;
})();
</script>`

var policy = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)

func TestThePageInABrowser(t *testing.T) {
	browser := chromium(t)
	page := gather(t, drawnRun(t), "drawn", analysis.Heads)
	text := htmlOf(t, page)
	all, drawn := figures(page), 0
	for _, f := range all {
		if f.SVG != "" {
			drawn++
		}
	}
	require.Greater(t, drawn, 25)
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))

	t.Run("the script runs under the page's own policy", func(t *testing.T) {
		dom := loaded(t, browser, file, "")
		require.Contains(t, dom, `data-colour="logprob"`)
		require.Equal(t, len(all), strings.Count(dom, "<figcaption>"))
		require.Equal(t, drawn, strings.Count(dom, "<svg "))
		require.Regexp(t, `<span class="scale" data-for="entropy" hidden`, dom)
		require.Contains(t, loaded(t, browser, file, "colour=advantage"), `data-colour="advantage"`)
	})
	t.Run("another script does not", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other.html")
		require.NoError(t, os.WriteFile(other, []byte(strings.Replace(text, "</body>",
			`<script>document.title="owned"</script></body>`, 1)), 0o644))
		require.NotContains(t, loaded(t, browser, other, ""), "<title>owned")
	})
	t.Run("the switch colours the tokens", func(t *testing.T) {
		open := policy.ReplaceAllString(text, "") // so that the probe may run
		require.NotEqual(t, text, open)
		probed := filepath.Join(t.TempDir(), "probed.html")
		require.NoError(t, os.WriteFile(probed, []byte(strings.Replace(open, "</body>", probe+"</body>", 1)), 0o644))
		found := regexp.MustCompile(`data-probed="([^"]*)"`).FindStringSubmatch(loaded(t, browser, probed, ""))
		require.Len(t, found, 2)
		said := strings.Split(found[1], ";")
		require.Len(t, said, 7)
		require.Contains(t, said[0], "logprob=logprob|rgba(")
		require.NotContains(t, said[0], "rgba(0, 0, 0, 0)")
		require.Contains(t, said[0], "|logprob")
		require.Contains(t, said[1], "entropy=entropy|")
		require.Contains(t, said[1], "|entropy")
		require.Contains(t, said[2], "advantage=advantage|")
		require.Equal(t, "none=none|rgba(0, 0, 0, 0)|", said[3])
		require.Equal(t, "fits=true", said[4], "no sideways scrolling")
		require.Equal(t, "tall=true", said[5])
		require.Equal(t, "full=true", said[6], "cards leave no holes: each row is as wide as the section")
	})
}
