"""tc-queue-system 1.0.0: a message goes to one consumer.

sqlstress app examples/tried/queue_tc_queue.py -c 4
"""

from tc_queue_system.service import QueueService

from sqlstress import check, connect, exactly_once, note, setup, transaction

MESSAGES = 200


@setup
def fill(database):
    queue = opened(database)
    for number in range(MESSAGES):
        queue.publish("work", {"number": number})
        note("put", number)


@connect
def opened(database):
    QueueService.reset()  # it keeps one queue in each process
    return QueueService(database)


@transaction
def consume(queue):
    if message := queue.consume("work"):
        queue.ack(message["id"])
        note("taken", message["data"]["number"])


@check
def each_message_is_taken_once(notes, database):
    queue, left = opened(database), []
    while message := queue.consume("work"):
        left.append(message["data"]["number"])
    exactly_once(notes.of("put"), notes.of("taken") + left)
