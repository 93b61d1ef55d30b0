package broken

var _ int = "not an int"
