"""The gain of tuning knn: the study of Xu et al. 2019, sections 2 and 3."""
