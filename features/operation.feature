Feature: Operation
  How a server starts, what a restart leaves, and what it counts.

  @GUARD-1 @MUST @needs-process
  Rule: Local storage and more than one replica exclude each other

    Scenario: several replicas on local storage
      When a server is started with several replicas on local storage
      Then it refuses to start, names replicas and storage, and never listens

  @GUARD-2 @MUST @needs-process
  Rule: One replica and local storage are the defaults, and nonsense is refused by name

    Scenario: nothing set
      When a server is started with nothing set
      Then it starts

    Scenario: local storage is the default
      When a server is started with several replicas
      Then it refuses to start, names replicas and storage, and never listens

    Scenario Outline: <settings>
      When a server is started with <settings>
      Then it starts

      Examples:
        | settings      |
        | one replica   |
        | local storage |

    Scenario Outline: nonsense as <setting>
      When servers are started with every value of <setting> that makes no sense
      Then each refuses to start and names that setting

      Examples:
        | setting                       |
        | replicas                      |
        | storage                       |
        | cache.maximum-size            |
        | cache.idle-expiry             |
        | anonymous.requests-per-minute |
        | anonymous.burst               |
        | anonymous.concurrency         |
        | anonymous.trusted-proxies     |
        | anonymous.client-header       |
        | anonymous.ipv6-prefix         |

  @RESTART-1 @MUST @needs-process
  Rule: After a restart on local storage each bucket is full, and startup counts one a process

    Scenario: an emptied bucket
      Given a server of its own
      And a rested user on the smallest plan
      When they send requests until the first rejection
      Then the whole burst was admitted
      When that server is stopped and another is started in its place
      And they send requests until the first rejection
      Then the whole burst was admitted

    @needs-metrics
    Scenario: starts are counted
      Given a server of its own
      When the page of metrics is read
      Then startup counts one
      When that server is stopped and another is started in its place
      And the page of metrics is read
      Then startup counts one

  @ANON-8 @MUST @needs-process
  Rule: What one address may try without a good key is configuration

    Scenario: the burst
      Given a server of its own with an anonymous burst of three
      When somebody sends wrong keys until the first rejection
      Then three of them were let through

    Scenario: the rate
      Given a server of its own with a quick anonymous rate
      When somebody sends wrong keys until the first rejection
      And somebody waits for one such attempt and makes it
      Then it was let through

    @needs-hold-auth
    Scenario: the places
      Given a server of its own with one anonymous place
      When the validations of two keys are begun and held
      Then one of them was refused for want of a place

    Scenario: the trusted proxies
      Given a server of its own with this machine as a trusted proxy
      When somebody sends wrong keys for one client after the other
      Then each client had attempts of its own

  @METRIC-1 @MUST @needs-metrics
  Rule: The limiter's meters are there and count what it does

    Scenario: every meter
      Given an emptied user on the smallest plan
      When the page of metrics is read
      Then each meter of the limiter is there, of its kind and with its labels

    Scenario: decisions for the rate
      Given a rested user on the smallest plan
      When the page of metrics is read
      And they send requests until the first rejection
      Then each decision on them is counted once, under their plan's rate
      And each of these decisions has a duration

    @needs-hold
    Scenario: decisions for the cap
      Given a user with the whole cap in flight
      When the page of metrics is read
      And they send a valid request
      Then each decision on them is counted once, under their plan's rate
      And each of these decisions has a duration
      And the caches hold them, and have room

    Scenario: attempts without a key
      Given a user with tokens to spare
      When the page of metrics is read
      And somebody makes one attempt without a key
      Then the attempt is counted as anonymous

    @needs-entitlements
    Scenario Outline: an entitlement that is <broken>
      Given a rested user on the smallest plan
      When their burst entitlement is <broken>
      And the page of metrics is read
      And they send more than their burst of such requests
      Then each answer is counted as <broken>

      Examples:
        | broken    |
        | missing   |
        | malformed |

  @METRIC-2 @MUST @needs-metrics
  Rule: The limiter's labels say nothing of anybody

    @needs-plans
    Scenario: many users, addresses and paths
      Given a rested user on the smallest plan
      When they send requests until the first rejection
      And somebody makes one attempt without a key
      And the page of metrics is read
      And other users do the same
      Then there are as many series as before
      And the limiter's labels are those of the contract and say nothing of anybody

    @needs-policy
    Scenario: a negotiated rate
      Given a rested user on the smallest plan
      When their rate is set to a telling number by an override with a reason and an author
      And the page of metrics is read
      And they send requests until the first rejection
      Then each decision on them is counted once, under their plan's rate
      When the page of metrics is read
      Then the limiter's labels are those of the contract and say nothing of anybody
