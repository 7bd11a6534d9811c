"""`nddup split`: a finished run divided into parts, written by part, and proved. Start reading at `make_split`.

The units and their parts are `nddup.stages.split_units`, on either engine; the rule is `nddup.splitting`.
"""
