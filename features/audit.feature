Feature: Audit
  What a request leaves behind. In a table of effects what is not listed is zero.

  @LOG-1 @MUST @needs-audit
  Rule: A 429 is one log entry, marked rejected

    Scenario: a rate rejection
      Given a user with tokens to spare
      When they send a request at an empty bucket
      Then it had these effects:
        | log entries | 1 |
      And its entry is marked rejected, with its error code

    @needs-hold
    Scenario: a concurrency rejection
      Given a user with tokens to spare
      When they send a request above the cap
      Then it had these effects:
        | log entries | 1 |
      And its entry is marked rejected, with its error code

  @LOG-3 @MUST @needs-audit
  Rule: Every other request is one log entry, and no entry holds a key or a body

    Scenario: a success
      Given a user with tokens to spare
      When they send a valid request
      Then it left one log entry, not marked rejected

    Scenario: an unknown path
      Given a user with tokens to spare
      When they send a request to an unknown path
      Then it left one log entry, not marked rejected

    Scenario: a request without a key
      Given an address with attempts to spare
      When somebody sends a valid request with no key
      Then it left one log entry, not marked rejected

    @needs-invalid
    Scenario: a validation failure
      Given a user with tokens to spare
      When they send a request that fails validation
      Then it left one log entry, not marked rejected

    Scenario: entries show neither key nor body
      Given a user with tokens to spare
      When they send valid requests, unknown paths and requests at an empty bucket
      Then no log entry holds their key or a body

  @LOG-4 @MUST @needs-audit
  Rule: A successful operation is charged once, nothing else is

    Scenario: a success is charged once
      Given a user with tokens to spare
      When they send a valid request
      Then it charged 1 operation

    Scenario Outline: <request> charges nothing
      Given a user with tokens to spare
      When they send <request>
      Then it charged 0 operations

      Examples:
        | request                      |
        | a request to an unknown path |
        | a request at an empty bucket |

      @needs-invalid
      Examples:
        | request                         |
        | a request that fails validation |

      @needs-operations
      Examples:
        | request                           |
        | a request without operations left |

      @needs-fail
      Examples:
        | request                         |
        | a request that the engine fails |

      @needs-engine
      Examples:
        | request                              |
        | a request that runs into its timeout |

      @needs-hold
      Examples:
        | request                 |
        | a request above the cap |

  @LOG-5 @DECIDED @needs-process @needs-kept-log
  Rule: What was answered is in the log, however the server ends

    Scenario: a kill right after the answers
      Given a server of its own
      And a rested user on the smallest plan
      When they send requests until the first rejection
      And that server is killed and another is started in its place
      Then each request that was answered is in the log, and once

    Scenario: a stop right after the answers
      Given a server of its own
      And a rested user on the smallest plan
      When they send requests until the first rejection
      And that server is stopped and another is started in its place
      Then each request that was answered is in the log, and once

  @LOG-6 @DECIDED @needs-process @needs-kept-log
  Rule: What is delivered twice is in the log once

    Scenario: a kill while entries are on their way
      Given a server of its own
      And a rested user on the smallest plan
      When that server is killed while they send requests, and another is started in its place
      Then each request that was answered is in the log, and once

  @LOG-7 @DECIDED @needs-operations
  Rule: The capacity check reserves one operation; success charges it, anything else gives it back

    Scenario Outline: <request> gives its operation back
      Given a user with tokens to spare
      When their operations are down to one
      And they send <request>
      And they send a valid request
      Then the answer is a success

      @needs-invalid
      Examples:
        | request                         |
        | a request that fails validation |

      @needs-fail
      Examples:
        | request                         |
        | a request that the engine fails |

      @needs-engine
      Examples:
        | request                               |
        | a request that makes the engine panic |
        | a request that runs into its timeout  |

    Scenario: of simultaneous requests no more succeed than operations are left
      Given a user with tokens to spare
      When their operations are down to two
      And they send as many requests at once as their cap
      Then no more of them succeeded than operations were left

    @needs-gates @needs-audit
    Scenario: what a request in flight has reserved is not there for another
      Given a user with tokens to spare
      When their operations are down to one
      And they have a request in flight in the engine
      And they send a valid request
      Then the answer says that no operation is left
      And what was in flight succeeds and is charged once

    @needs-gates @needs-audit
    Scenario: a success is charged, also when its client has gone
      Given a user with tokens to spare
      When a client goes away while its response is being written
      Then exactly one operation was charged

  @LOG-8 @DECIDED @needs-http1
  Rule: What the HTTP parser refuses is out of scope

    Scenario: it has no request id and costs no token
      Given a user with tokens to spare
      When they send what an HTTP parser refuses
      Then none of the refusals has a request id
      And no token was spent

    @needs-audit
    Scenario: it leaves no log entry
      Given a user with tokens to spare
      When they send a valid request
      And they send what an HTTP parser refuses
      Then nothing but the valid request left a log entry
