Feature: Permits
  When a place under the cap is taken, and when it is free again. A place may be
  free a moment after the client has its answer, so each scenario looks again for
  a while before it says that one is lost.

  @PERMIT-1 @MUST @needs-hold @needs-gates
  Rule: A permit is held until the response is written

    Scenario: responses that still stream count
      Given a user with the whole cap in responses that are being written
      When they ask for one more such response
      Then the answer is a concurrency rejection

  @PERMIT-2 @MUST @needs-hold
  Rule: The permit comes back after success

    Scenario: the cap is what it was after successes
      Given a user whose cap is exact
      When they send valid requests, two of them
      Then their cap is exact

  @PERMIT-3 @MUST @needs-hold @needs-invalid
  Rule: The permit comes back after a validation failure

    Scenario: the cap is what it was after validation failures
      Given a user whose cap is exact
      When they send requests that fail validation, two of them
      Then their cap is exact

  @PERMIT-4 @MUST @needs-hold @needs-operations
  Rule: The permit comes back after a capacity rejection

    Scenario: the cap is what it was after capacity rejections
      Given a user whose cap is exact
      When they send requests without operations left, two of them
      Then their cap is exact

  @PERMIT-5 @MUST @needs-hold
  Rule: The permit comes back after an engine failure

    Scenario Outline: the cap is what it was after <requests>
      Given a user whose cap is exact
      When they send <requests>, two of them
      Then their cap is exact

      @needs-fail
      Examples:
        | requests                       |
        | requests that the engine fails |

      @needs-engine
      Examples:
        | requests                            |
        | requests that make the engine panic |

  @PERMIT-6 @MUST @needs-hold @needs-engine
  Rule: The permit comes back after a timeout, once the work has ended

    Scenario: the cap is what it was after timeouts
      Given a user whose cap is exact
      When they send requests that run into their timeout, two of them
      Then their cap is exact

    @needs-gates
    Scenario: work that goes on past its timeout keeps its permit
      Given a user whose cap is exact
      When their whole cap times out while the work goes on
      And they send a valid request
      Then the answer is a concurrency rejection
      And once the work has ended their cap is exact

  @PERMIT-7 @MUST @needs-hold
  Rule: The permit comes back after the client disconnects

    Scenario Outline: the cap is what it was after clients left <when>
      Given a user whose cap is exact
      When two of their requests are abandoned <when>
      Then their cap is exact

      @needs-upload
      Examples:
        | when                           |
        | while the body is still coming |

      @needs-gates
      Examples:
        | when                |
        | before the response |
        | during the response |

    @needs-http2
    Scenario: the cap is what it was after clients reset their HTTP/2 streams
      Given a user whose cap is exact
      When two of their requests are abandoned by a reset of their streams
      Then their cap is exact

  @PERMIT-8 @MUST @needs-hold
  Rule: A permit comes back exactly once

    Scenario: rejections above the cap free no place
      Given a user with the whole cap in flight
      When they send three valid requests
      Then each answer is a concurrency rejection

    Scenario: whatever ends while another is in flight ends once
      Given a user whose cap is exact
      When they have one request in flight
      And other requests end in every way there is
      Then their cap is exact but for the one in flight
