package chaos

import (
	"fmt"
	"strconv"
	"strings"
)

// Who a fault is done to. The zero Who is nobody.
type Who struct {
	Component string // or "*": any
	Task      int    // its index, or One or All
}

const (
	// One of the tasks, drawn each time.
	One = -1
	// All of the tasks.
	All = -2
)

// Anyone is one task of the whole topology, drawn each time.
var Anyone = Who{"*", One}

// Everyone is all tasks of the topology.
var Everyone = Who{"*", All}

// A Task is a who of one task of a component.
func Task(component string, index int) Who { return Who{component, index} }

func (w Who) String() string {
	switch {
	case w.Task == One:
		return w.Component
	case w.Task == All:
		return w.Component + "/*"
	}
	return w.Component + "/" + strconv.Itoa(w.Task)
}

// Is reports whether a task is meant: that one, or one of those of whom one is drawn.
func (w Who) Is(component string, task int) bool {
	return (w.Component == "*" || w.Component == component) && (w.Task < 0 || w.Task == task)
}

func parseWho(s string) (w Who, err error) {
	name, task, has := strings.Cut(s, "/")
	w = Who{name, One}
	switch {
	case name != "*" && !isName(name):
		err = fmt.Errorf("%q names nobody: say count/2 for a task, count for one of its tasks, count/* for all, * for any", s)
	case has && task == "*":
		w.Task = All
	case has && name == "*":
		err = fmt.Errorf("%q is a task of no component: say * for any task or */* for all", s)
	case has:
		n, e := strconv.ParseUint(task, 10, 31)
		if w.Task = int(n); e != nil {
			err = fmt.Errorf("%q: the task of %s is a number from 0 on, or *", s, name)
		}
	}
	return w, err
}

// isName reports whether a component can have that name.
func isName(s string) bool {
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
		if !letter && (i == 0 || r != '-' && r != '.') {
			return false
		}
	}
	return s != ""
}
