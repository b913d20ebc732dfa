"""One harness for all figures and tables: data sets × methods × sizes → a CSV file.

config.py    a TOML file as a list of cases
data.py      the sets of the paper from files, scikit-learn or generated
synthetic.py generated rows: five small sets, and one of any length
problems.py  rows, targets and widths of the data sets
methods.py   feature maps by name: ours, scikit-learn's, plain NumPy's, and nothing
learners.py  models by name, for those peers that are no feature maps
tasks/       what is done with a case: approximate K, learn, grow
errors.py    ‖K − K̃‖₂ and tr(K − K̃) on a dense K
measuring.py seconds, peak memory, threads, versions
results.py   the CSV file, which a killed run goes on with
"""
