package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestListInTheBrowser(t *testing.T) {
	p := openTab(t)
	s := serve(t, train(t, recordtest.Options{Outputs: true}), "r")
	s.complete(2)
	p.open(s.link(""))
	p.is("24", listed)
	require.Equal(t, "", p.value(query), "the token leaves the address bar")
	p.is("r · ropewalk view", "document.title")
	p.is("00002/0000/000", firstRow)

	p.press("/")
	p.write("00001/0001")
	p.is("4", listed)
	p.is("?q=00001/0001", query)
	p.press("\u001b") // leaves the field
	p.press("w")
	p.write("beauty > 1")
	p.is("true", `document.getElementById("complaint").innerText.includes('"beauty" not found')`)
	p.value(`document.querySelector("[name=where]").select()`)
	p.write("reward = 1")
	p.is("1", listed)
	p.is("true", `document.getElementById("complaint").hidden`)
	p.press("\u001b")
	p.press("x")
	p.is("24", listed)

	click := func(selector string) {
		p.value(fmt.Sprintf("document.querySelector(%q).click()", selector))
	}
	click(".choice[data-key=fate] summary")
	click(`.choice[data-key=fate] input[value=zero_variance]`)
	p.is("8", listed)
	p.is("?fate=zero_variance", query)
	click("#reset")
	p.is("24", listed)
	click(".head .of-reward button")
	p.is("?sort=-reward", query)
	p.is("1", `document.querySelector(".row .of-reward").innerText`)
	click(".head .of-reward button")
	p.is("0", `document.querySelector(".row .of-reward").innerText`)
	p.value("history.back()")
	p.is("?sort=-reward", query)
	p.is("1", `document.querySelector(".row .of-reward").innerText`)
}

// What a policy writes is text: it neither runs nor becomes an element.
func TestMarkupStaysText(t *testing.T) {
	p := openTab(t)
	const attack = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	objects := mem.New()
	recordtest.Large(t, objects, recordtest.LargeOptions{Run: "r", Steps: 1, Groups: 2, Samples: 2, Shards: 1,
		Problems: 1, Seed: 1, Response: attack})
	s := serve(t, objects, "r")
	s.complete(1)
	p.open(s.link("t=00001/0000/000"))
	p.is("true", fmt.Sprintf(`document.getElementById("closeup").innerText.includes(%q)`, "<img src=x onerror="))
	p.is("0", `document.querySelectorAll("#closeup img, #closeup script").length`)
	p.is("r · ropewalk view", "document.title")
	// Even a script that came into the page would not run.
	p.value(`document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=\"document.title='owned'\">")`)
	time.Sleep(100 * time.Millisecond)
	p.is("r · ropewalk view", "document.title")
}

// The page follows a run: a step that is done appears in the list, the header and the figures.
func TestLiveInTheBrowser(t *testing.T) {
	p := openTab(t)
	source := mem.New()
	recordtest.Train(t, source, recordtest.Options{Run: "r", Seed: 1, Steps: 3, Created: "2026-01-02T03:04:05Z"})
	objects := &growing{Store: source}
	objects.upTo(1)
	s := serve(t, objects, "r")
	p.open(s.link("t=00002/0000/000"))
	p.is("12", listed)
	p.is("true", `document.querySelector("#closeup .complaint") !== null`)
	objects.upTo(2)
	p.is("00002/0000/000", shownID) // a link to what is not done yet waits for it
	p.press("\u001b")
	p.value(`document.getElementById("new").click()`)
	p.is("24", listed)
	p.is("00002/0000/000", firstRow)
	p.press("f")
	p.is("2", `document.getElementById("figures").dataset.steps`)
	figures := p.value(`document.querySelectorAll("#figures figure svg").length`)
	require.NotEqual(t, "0", figures)
	objects.upTo(3)
	p.is("3", `document.getElementById("figures").dataset.steps`)
	p.is("true", `document.getElementById("progress").innerText.startsWith("done · step 3")`)
	p.press("t")
	p.is("36", listed)
}

// The names of filters in the page's addresses are those that the server knows.
func TestNamesOfFilters(t *testing.T) {
	p := openTab(t)
	s := serve(t, train(t, recordtest.Options{}), "r")
	s.complete(2)
	p.open(s.link(""))
	p.is("24", listed)
	var names []string
	require.NoError(t, json.Unmarshal([]byte(p.value(`JSON.stringify([...new Set([`+
		`...[...document.querySelectorAll("#filters [name]")].map((i) => i.name),`+
		`...[...document.querySelectorAll(".choice")].map((c) => c.dataset.key)])])`)), &names))
	slices.Sort(names)
	require.Equal(t, []string{"fate", "level", "max", "min", "part", "q", "status", "step", "where"}, names)
}
