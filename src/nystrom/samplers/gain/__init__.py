"""The default: pivots ranked on pools of rows by what each takes off the error."""
