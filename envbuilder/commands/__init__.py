"""The verbs. They alone know the order of the stages:

load -> resolve -> plan -> lock -> render -> build -> smoke -> record -> publish.
"""
