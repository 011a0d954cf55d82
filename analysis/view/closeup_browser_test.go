package view_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestCloseupInTheBrowser(t *testing.T) {
	p := openTab(t)
	objects := mem.New()
	recordtest.Large(t, objects, recordtest.LargeOptions{Run: "r", Steps: 2, Groups: 3, Samples: 4, Shards: 2,
		Problems: 2, Seed: 1})
	s := serve(t, objects, "r")
	s.complete(2)
	kept := s.list(url.Values{"fate": {"kept"}, "status": {"ok"}, "limit": {"1"}}).column("trajectory_id")[0]
	p.open(s.link(""))
	p.is("24", listed)
	p.press("j")
	p.press("j")
	p.press("\r")
	p.is("00002/0000/001", shownID)
	p.press("k")
	p.is("00002/0000/000", shownID)
	p.press("l")
	p.is("00002/0000/001", shownID)
	p.press("h")
	p.is("00002/0000/000", shownID)
	p.open(s.link("t=" + kept))
	p.is(kept, `document.querySelector(".row.at")?.dataset.id`) // the list shows where it is
	p.is("2", `document.querySelectorAll("#closeup .turn").length`)
	p.is("1", `document.querySelectorAll("#closeup .call").length`)
	for key, name := range map[string]string{"1": "logprob", "2": "entropy", "5": "advantage", "6": "mask"} {
		p.press(key)
		p.is(name, colourBy)
		p.is("true", `document.querySelector("#closeup .scale").innerText !== ""`)
		p.is("true", coloured)
	}
	p.press("0")
	p.is("none", colourBy)
	p.is("false", coloured)

	p.press("g")
	p.is("4", `document.querySelectorAll("#side .member").length`)
	p.press("5")
	p.is("?t="+kept+"&group=1&colour=advantage", query)
	link := p.value("location.href")
	p.press("\u001b")
	p.is("", shownID)
	p.open(link) // a link shows the same again
	p.is("4", `document.querySelectorAll("#side .member").length`)
	p.is("advantage", colourBy)
	p.is("true", coloured)
	p.open(strings.Replace(link, kept, "00009/0000/000", 1))
	p.is("true", `document.querySelector("#closeup .complaint")?.innerText.includes("is not among the finished steps")`)
	p.press("?")
	p.is("true", `document.getElementById("help").open && document.querySelectorAll("#columns div").length > 20`)
}

// A quantity is offered where the record has it, and else the page says why it does not.
func TestQuantitiesInTheBrowser(t *testing.T) {
	p := openTab(t)
	o := recordtest.LargeOptions{Run: "r", Steps: 1, Groups: 3, Samples: 4, Shards: 2, Problems: 2, Seed: 1}
	without, with := mem.New(), mem.New()
	recordtest.Large(t, without, o)
	o.Recompute = true
	recordtest.Large(t, with, o)
	const offered = `["ratio", "reference"].map((v) => ` +
		`document.querySelector("#closeup input[value=" + v + "]")?.disabled === false)`

	s := serve(t, without, "r")
	s.complete(1)
	kept := s.list(url.Values{"fate": {"kept"}, "limit": {"1"}}).column("trajectory_id")[0]
	p.open(s.link("t=" + kept))
	p.is("false,false", offered)
	p.is("logprob", colourBy)
	p.press("3")
	p.is("true", `document.getElementById("tip").innerText.startsWith("The recipe has loss.old_log_probs: rollout")`)
	require.Equal(t, "logprob", p.value(colourBy))
	p.open(s.link("t=" + kept + "&colour=ratio"))
	p.is("true", `document.querySelector("#closeup .missing")?.innerText.startsWith("The recipe has")`)
	require.Equal(t, "false", p.value(coloured))

	s = serve(t, with, "r")
	s.complete(1)
	p.open(s.link("t=" + kept))
	p.is("true,true", offered)
	for key, name := range map[string]string{"3": "ratio", "4": "reference"} {
		p.press(key)
		p.is(name, colourBy)
		p.is("true", coloured)
	}
	p.value(`document.querySelector("#closeup .piece[data-tone]").dispatchEvent(` +
		`new MouseEvent("mouseover", {bubbles: true}))`)
	p.is("log-probability,entropy,ratio,reference,advantage,mask",
		`[...document.querySelectorAll("#tip span")].map((s) => s.innerText)`)
	dropped := s.list(url.Values{"where": {"not kept"}, "limit": {"1"}}).column("trajectory_id")[0]
	p.open(s.link("t=" + dropped + "&colour=reference"))
	p.is("false,false", offered)
	p.is("true", `document.querySelector("#closeup .missing")?.innerText.includes("not in it")`)
}
