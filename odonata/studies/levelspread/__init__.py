"""The Level-Spread study: Y. Zhang's thesis (Boston University, 2021), chapter 3.

Reading order: `cases`, `simulation`, `store`, `sweep`, `claims`, `figures`.
"""
