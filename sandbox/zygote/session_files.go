package zygote

import "github.com/ropewalk/ropewalk/sandbox"

// receivedFiles collects the requested files that a cell sends.
type receivedFiles struct {
	wanted  []string
	content map[int][]byte
	total   int
}

// receive adds a piece of the file wanted[place]. The total size has the same bound as the files that a call may bring.
func (f *receivedFiles) receive(place int, piece []byte) cause {
	if place < 0 || place >= len(f.wanted) {
		return causeForged
	}
	f.total += len(piece)
	if f.total > sandbox.MostInput {
		return causeFiles
	}
	if f.content == nil {
		f.content = map[int][]byte{}
	}
	f.content[place] = append(f.content[place], piece...)
	return causeNone
}

// list returns the files in the order in which they were requested; an empty file has no content.
func (f *receivedFiles) list() (files []sandbox.File) {
	for i, name := range f.wanted {
		if content, there := f.content[i]; there {
			files = append(files, sandbox.File{Name: name, Content: content})
		}
	}
	return files
}
