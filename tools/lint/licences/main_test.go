package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mit = `MIT License

Copyright (c) 2020 Someone

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

// copyleft is the notice by which a file is put under a licence that is not allowed.
const copyleft = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU Affero General
Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any
later version. This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even
the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU Affero General Public License
for more details. You should have received a copy of the GNU Affero General Public License along with this program. If
not, see <https://www.gnu.org/licenses/>.
`

func TestLicences(t *testing.T) {
	for name, c := range map[string]struct{ file, text, fault string }{
		"allowed":     {"LICENSE", mit, ""},
		"markdown":    {"License.md", mit, ""},
		"not allowed": {"LICENSE", copyleft, "not one of"},
		"unknown":     {"LICENSE", "You may use this on Tuesdays.", "known licence"},
		"missing":     {"README", mit, "no licence file"},
		"mixed":       {"LICENSE", mit + "\n" + copyleft, "not one of"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			names, err := licences(module{Path: "example.com/m", Dir: dir})
			switch {
			case c.fault == "" && (err != nil || len(names) != 1 || names[0] != "MIT"):
				t.Fatalf("got %v, %v, want MIT", names, err)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault) ||
				!strings.Contains(err.Error(), "example.com/m")):
				t.Fatalf("got %v, %v, want an error with %q that names the module", names, err, c.fault)
			}
		})
	}
}

func TestNothingLinkedIsRefused(t *testing.T) {
	if err := run(nil, os.Stdout); err == nil {
		t.Fatal("no package was named, and no error came")
	}
}
