package judge

import "sync"

// remembered is how many answers a memory holds. A reply has a word, so an answer takes some hundred bytes.
const remembered = 1 << 14

// Memory holds the latest verdicts of a worker, so that another attempt of a stage, or another shard of the run, does
// not ask the same prompt again. Its zero value is empty; a nil Memory remembers nothing. It is safe for concurrent
// use.
type Memory struct {
	lock    sync.Mutex
	answers map[asked]Answer
	earlier map[asked]Answer // those before the latest half
}

// asked identifies a prompt of a run, and everything that its reply depends on.
type asked struct {
	run, url, model, key, digest string
	temperature                  float64
	seed                         uint64
	tokens                       int
}

func (j *Judge) asked(digest string) asked {
	s := j.settings
	return asked{j.run, s.URL, s.Model, s.Key, digest, s.Temperature, s.Seed, s.MaxTokens}
}

func (m *Memory) find(key asked) (Answer, bool) {
	if m == nil {
		return Answer{}, false
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if a, ok := m.answers[key]; ok {
		return a, true
	}
	a, ok := m.earlier[key]
	return a, ok
}

func (m *Memory) keep(key asked, a Answer) {
	if m == nil {
		return
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(m.answers) >= remembered/2 {
		m.earlier, m.answers = m.answers, nil
	}
	if m.answers == nil {
		m.answers = map[asked]Answer{}
	}
	m.answers[key] = a
}
