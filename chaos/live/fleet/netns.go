package fleet

import "errors"

type bridge struct{}

func newBridge(nodes int) (*bridge, error)       { return nil, errors.New("not yet") }
func (b *bridge) addr(node, port int) string     { return "" }
func (b *bridge) space(node int) string          { return "" }
func (b *bridge) cut(name string, on bool) error { return nil }
func (b *bridge) close() error                   { return nil }
