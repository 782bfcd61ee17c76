Feature: Before authentication
  What one client address may try without a good key.

  @ANON-1 @MUST
  Rule: An address has a burst of attempts and gets them back at a rate

    Scenario Outline: <credentials>
      Given an address at rest
      When somebody tries <credentials> from there until the first rejection
      Then the address's burst was let through, and no more

      Examples:
        | credentials            |
        | wrong keys             |
        | credentials in any way |

    Scenario: attempts come back
      Given an emptied address
      When somebody waits for two attempts
      And somebody tries wrong keys from there until the first rejection
      Then attempts came back at the address's rate

  @ANON-2 @MUST
  Rule: Every address has a pool of its own

    @needs-addresses
    Scenario: two addresses
      Given an emptied address
      When somebody tries wrong keys from other addresses
      Then each had a pool of its own

    @needs-proxy
    Scenario: two networks of IPv6 addresses
      Given an emptied client with an IPv6 address
      When attempts come for clients of other prefixes
      Then each had a pool of its own

    @needs-proxy
    Scenario: one network of IPv6 addresses
      Given an emptied client with an IPv6 address
      When attempts come for other addresses of its prefix
      Then each was held to that client's pool

  @ANON-3 @MUST @needs-hold-auth @needs-policy
  Rule: Only so many attempts of an address are in flight

    Scenario: one more than there are places
      Given an address at rest
      And a user with a key for each place of that address, and one more
      When the validation of one key for each place is held
      And they send a valid request with the key that is left
      Then it was refused for want of a place

    Scenario: a place is free once authentication is decided
      Given an address at rest
      And a user with a key for each place of that address, and one more
      When the validation of one key for each place is held
      And what is held is let go
      And they send a valid request with the key that is left
      Then it was authenticated

  @ANON-4 @MUST
  Rule: The rejection says when to try again and nothing else

    Scenario: for the rate
      Given an emptied address
      When somebody tries wrong keys from there until the first rejection
      Then the rejection is generic

    @needs-hold-auth @needs-policy
    Scenario: for want of a place
      Given an address at rest
      And a user with a key for each place of that address, and one more
      When the validation of one key for each place is held
      And they send a valid request with the key that is left
      Then the rejection is generic

    @needs-audit
    Scenario: nothing is done for it
      Given an emptied address
      When somebody tries wrong keys from there until the first rejection
      Then no work was done for it, and nothing was charged

  @ANON-5 @MUST
  Rule: Attempts and users leave each other's pools alone

    Scenario: attempts leave a user's bucket as it was
      Given an address at rest
      And a user with tokens to spare
      When they send a valid request
      And somebody tries wrong keys from there until the first rejection
      Then no token was spent

    Scenario: a user's requests leave the address's pool as it was
      Given an address at rest
      And a rested user on the smallest plan
      When they send requests until the first rejection
      And somebody tries wrong keys from there until the first rejection
      Then the address's burst was let through, and no more

    @needs-hold
    Scenario: a full cap leaves the address's places as they were
      Given an address at rest
      And a user with the whole cap in flight
      When somebody tries a wrong key from there
      Then it was told to be unauthenticated

  @ANON-6 @MUST @needs-audit
  Rule: An attempt is refused before anything is looked up

    Scenario: at an empty pool
      Given an emptied address
      When somebody tries wrong keys from there until the first rejection
      Then nothing was looked up for it

  @ANON-7 @DECIDED
  Rule: Whoever authenticates is held to the plan alone

    @needs-policy
    Scenario: first uses of good keys cost the address nothing
      Given an address at rest
      And more users than the address has attempts
      When each of them sends a valid request
      And somebody tries wrong keys from there until the first rejection
      Then the address's burst was let through, and no more

    Scenario: a key lately seen good passes while the pool is empty
      Given an address at rest
      And a user with tokens to spare
      When they send a valid request
      And somebody tries wrong keys from there until the first rejection
      And they send a valid request
      Then it was authenticated

    @needs-policy
    Scenario: a key that nobody knows yet does not
      Given an emptied address
      And a new user with a few keys
      When they try each of their keys on that emptied address
      Then one of them was held to that pool

    @needs-hold-auth @needs-audit @needs-policy
    Scenario: simultaneous first uses of one key are validated once
      Given an address at rest
      And a new user
      When they start more first uses of one key at once than the address has places
      Then all were authenticated by one validation

  @LOG-2 @MUST @needs-audit
  Rule: A rejection before authentication is one log entry without credentials or content

    Scenario: at an empty pool
      Given an emptied address
      When somebody tries wrong keys with a marked body from there until the first rejection
      Then it left one log entry marked rejected, that holds neither key nor body
