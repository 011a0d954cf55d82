module github.com/ropewalk/ropewalk/tools/check

go 1.26
