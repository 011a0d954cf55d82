package view

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// fields are what is typed into the page's filters.
var fields = map[string]struct{ name, text string }{
	"page: typed text":   {"q", "boxed{1"},
	"page: typed SQL":    {"where", "turns > 1 and group_variance > 0.2"},
	"page: typed steps":  {"step", "20-60"},
	"page: typed reward": {"min", "0.5"},
}

// typed fills a field and resolves to the milliseconds until the list shows the answer.
const typed = `new Promise((done) => {
  const list = document.getElementById("list"), field = document.querySelector("#filters [name=%s]");
  const began = performance.now(), before = list.dataset.loaded;
  const watch = new MutationObserver(() => {
    if (list.dataset.loaded === before) return;
    watch.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watch.observe(list, {attributes: true});
  field.value = %q;
  field.dispatchEvent(new InputEvent("input", {bubbles: true}));
})`

// shows reports whether the page lists so many trajectories and has drawn rows.
const shows = `(() => {
  const total = Number(document.querySelector("#summary b")?.textContent.replaceAll(",", "") ?? 0);
  return document.querySelector(".row") ? total : 0;
})()`

// inBrowser measures the page itself: from the start of the viewer to rows on the page, and from a key to the answer.
func inBrowser(ctx context.Context, dir, root string, trajectories, rounds int, found map[string][]float64) error {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return bench.Skip("there is no Chromium on PATH")
	}
	ctx, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1440, 900),
		chromedp.UserDataDir(filepath.Join(dir, "profile")))...)
	defer end()
	ctx, end = chromedp.NewContext(ctx)
	defer end()
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		return fmt.Errorf("start Chromium: %w", err)
	}
	for range rounds {
		if err := visit(ctx, root, trajectories, found); err != nil {
			return err
		}
	}
	return nil
}

// visit opens the page of a new viewer and types into its filters.
func visit(ctx context.Context, root string, trajectories int, found map[string][]float64) (err error) {
	began := time.Now()
	s, err := serve(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := chromedp.Do(ctx, chromedp.Navigate(s.link)); err != nil {
		return err
	}
	for have := 0; have < trajectories; {
		total, err := chromedp.Run(ctx, chromedp.Evaluate[int](shows))
		if err != nil {
			return err
		}
		if total > 0 && have == 0 {
			found["page: first rows"] = append(found["page: first rows"], bench.Milliseconds(time.Since(began)))
		}
		have = total
		time.Sleep(20 * time.Millisecond) // each look takes processor time from what is measured
	}
	found["page: all rows"] = append(found["page: all rows"], bench.Milliseconds(time.Since(began)))
	for name, f := range fields {
		took, err := chromedp.Run(ctx, chromedp.Evaluate[float64](fmt.Sprintf(typed, f.name, f.text),
			chromedp.EvalAwaitPromise))
		if err != nil {
			return fmt.Errorf("measure %s: %w", name, err)
		}
		found[name] = append(found[name], took)
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[float64](fmt.Sprintf(typed, f.name, ""),
			chromedp.EvalAwaitPromise)); err != nil {
			return fmt.Errorf("clear %s: %w", name, err)
		}
	}
	return nil
}
