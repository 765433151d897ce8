"""The wire: the messages that services exchange.

`envelope` turns a message into bytes and back; `jobs`, `results` and `outcomes` say what the messages hold.
"""
